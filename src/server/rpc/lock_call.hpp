#pragma once

#include "server/requests/acquisition.hpp"
#include "server/rpc/desk.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/lock.pb.h"

namespace tenure::server {

/// Answers one Lock or TryLock with the end of its acquisition. A caller that goes away while it
/// waits leaves the queue. REQUIRES: on the store's thread.
void answer_lock(Desk& desk, Acquisition::Order order, const ReplyTo<v1::LockResponse>& reply);

}  // namespace tenure::server
