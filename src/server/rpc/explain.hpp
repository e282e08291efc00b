#pragma once

#include "core/item.hpp"
#include "core/lock_table.hpp"
#include "server/auth/access.hpp"
#include "server/store/store.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::server {

/// Messages of Admin.List and Admin.Explain.
// Not filtered: the caller has checked the permission to read the lock.
void write_holder(const core::Hold& hold, const core::Item& item, const View& view,
                  v1::Holder& out);
void write(const core::Resource& resource, const core::Lock& lock, const View& view,
           v1::LockStatus& out);

/// Describes the holders and the queue of a lock, what each waiter waits for, and a human-readable
/// summary. Without holders and waiters only the summary is set. Waits of the holders for other
/// locks are included as far as `access` may read them.
void explain(const core::Resource& resource, const View& view, const auth::Access& access,
             v1::ExplainResponse& out);

}  // namespace tenure::server
