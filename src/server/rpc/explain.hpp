#pragma once

#include "core/item.hpp"
#include "core/lock_table.hpp"
#include "server/auth/access.hpp"
#include "server/store/store.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// What operators look at.
void write_holder(const core::Hold& hold, const core::Item& item, const View& view,
                  v1::Holder& out);
void write(const core::Resource& resource, const core::Lock& lock, const View& view,
           v1::LockStatus& out);

/// Who holds a lock, who waits for it and for whom, and a sentence about it. Nothing is filled in
/// if nobody holds it or waits for it, except the sentence.
/// What its holders wait for is there as far as `access` may read it.
void explain(const core::Resource& resource, const View& view, const auth::Access& access,
             v1::ExplainResponse& out);

}  // namespace tenure::server
