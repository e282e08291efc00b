#pragma once

#include "server/auth/access.hpp"
#include "server/store/store.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// What is most in demand, for Admin's Top. HolderQueries at the waits and holds that are oldest,
/// and at no more than a few thousand of them: the store's thread has other things to do. Of these
/// what `access` may read; leases only for those who may read everything.
void write_top(const v1::TopRequest& request, const View& view, const auth::Access& access,
               v1::TopResponse& out);

}  // namespace tenure::server
