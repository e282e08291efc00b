#pragma once

#include "core/item.hpp"
#include "server/store.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// What operators look at.
void write(const core::Place& place, const core::Lock& lock, const View& view, v1::LockStatus& out);

/// Who holds a lock, who waits for it and for whom, and a sentence about it. Nothing is filled in
/// if nobody holds it or waits for it, except the sentence.
void explain(const core::Place& place, const View& view, v1::ExplainResponse& out);

}  // namespace tenure::server
