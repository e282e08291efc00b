#pragma once

#include "server/requests/pending_acquire.hpp"
#include "server/rpc/rpc_context.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/lock.pb.h"

namespace tenure::server {

/// Answers one Lock or TryLock with the end of its acquisition. A caller that goes away while it
/// waits leaves the queue. REQUIRES: on the store's thread.
void run_lock_call(RpcContext& context, PendingAcquire::Request order,
                   const ReplyPtr<v1::LockResponse>& reply);

}  // namespace tenure::server
