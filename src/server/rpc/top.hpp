#pragma once

#include "server/auth/access.hpp"
#include "server/store/store.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// Implements Admin.Top. Visits the oldest waits and holds, at most a few thousand, because it runs
/// on the store's thread. Contains only what `access` may read; leases require `read` on the empty
/// prefix.
void write_top(const v1::TopRequest& request, const View& view, const auth::Access& access,
               v1::TopResponse& out);

}  // namespace tenure::server
