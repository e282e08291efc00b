#pragma once

#include <atomic>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include "server/auth/access.hpp"
#include "server/auth/authorizer.hpp"
#include "server/http/message.hpp"
#include "server/http/responses.hpp"
#include "server/requests/pending_acquire.hpp"
#include "server/requests/rollback_gate.hpp"
#include "server/requests/waiter_registry.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// Handlers of the HTTP lock API: leases, and locks under them, one name per request. Atomic
/// acquisition of several names, key ranges and sessions are available by gRPC only.
///
/// An acquire without a lease grants one for this lock alone. Its request id equals the lease id,
/// which marks the lease as implicit: it ends with the lock.
///
/// The caller checks the permission for the lock name; lease ownership is checked here. HTTP thread
/// only, including the replies.
///
/// Every request parses its body on the HTTP thread, continues on the store's thread, where lease
/// ownership can be read consistently with the command that follows, and replies on the HTTP
/// thread.
class LockHandlers {
 public:
  /// REQUIRES: the store has not started, and is stopped before this is destroyed. `authorizer`
  /// records denied leases; null: no users.
  LockHandlers(Store& store, boost::asio::any_io_executor executor, auth::Authorizer* authorizer);

  void acquire(const Request& request, Reply reply);
  void release(const Request& request, Reply reply);
  void extend(const Request& request, Reply reply);

  void grant_lease(const Request& request, Reply reply);
  void renew_lease(const Request& request, Reply reply);
  void revoke_lease(const Request& request, Reply reply);

  /// From now on a closed connection is not treated as a disconnected client, so waits keep their
  /// positions for a retry at the next leader.
  void stop() noexcept { is_stopping_ = true; }

 private:
  /// Acquire request in progress.
  class Attempt;
  /// Client of a request.
  struct Requester {
    auth::Access access;
    std::string address;
  };
  /// Copy that outlives the request.
  [[nodiscard]] static Requester requester_of(const Request& request) {
    return {.access = request.access, .address = request.client.address};
  }
  /// Whether a live lease belongs to another user; replies treat it as unknown. Store thread only.
  [[nodiscard]] bool is_foreign(const Requester& requester, core::LeaseId lease) const;

  [[nodiscard]] PendingAcquire::Context acquire_context() {
    return {
        .store = store_, .waiters = waiters_, .rollbacks = rollbacks_, .is_stopping = is_stopping_};
  }
  /// Proposes a command on a lease; a lease of another user yields LeaseLost.
  void propose_for(core::LeaseId lease, const Request& request, core::Command command,
                   Store::Decision decided);
  /// Reply that can be called on the store's thread.
  [[nodiscard]] Reply on_http_thread(Reply reply) const {
    return reply_on(executor_, std::move(reply));
  }

  Store& store_;
  boost::asio::any_io_executor executor_;
  auth::Authorizer* authorizer_;
  /// Pending waits of all requests. Store thread only.
  WaiterRegistry waiters_;
  /// Store thread only, as the waits.
  RollbackGate rollbacks_;
  /// Written by stop() on another thread, read on the store's thread.
  std::atomic<bool> is_stopping_ = false;
};

}  // namespace tenure::server::http
