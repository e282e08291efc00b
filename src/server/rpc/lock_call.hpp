#pragma once

#include "server/requests/pending_acquire.hpp"
#include "server/rpc/rpc_context.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/lock.pb.h"

namespace tenure::server {

/// Runs one Lock or TryLock call until the acquire completes. If the client disconnects while it
/// waits, the request leaves the queue. REQUIRES: store thread.
/// REQUIRES: the caller has checked the permissions for the items and the lease.
void run_lock_call(RpcContext& context, PendingAcquire::Request request,
                   const ReplyPtr<v1::LockResponse>& reply);

}  // namespace tenure::server
