#pragma once

#include <atomic>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "server/auth/access.hpp"
#include "server/auth/authorizer.hpp"
#include "server/http/message.hpp"
#include "server/requests/pending_acquire.hpp"
#include "server/requests/waiter_registry.hpp"
#include "server/store/store.hpp"

namespace tenure::server::http {

/// What programs do that have nothing but HTTP: leases, and locks under them. For one name at a
/// time; several at once, ranges and sessions are gRPC's.
///
/// Who asks for a lock without a lease gets one with it: the request has the number of the lease
/// then, which says that the lease is for this lock alone, and ends with it.
///
/// Whether a name may be locked is known by who calls this; whose lease it is, is checked here.
/// Everything is called at home, and answers there.
class Locking {
 public:
  /// REQUIRES: the store has not started; it is stopped before this is destroyed.
  /// `authorizer` is told of who wants a lease of somebody else; null: there are no users.
  Locking(Store& store, boost::asio::any_io_executor home, auth::Authorizer* authorizer);

  void acquire(const Request& request, const std::string& name, Reply reply);
  void release(const Request& request, std::string name, Reply reply);
  void extend(const Request& request, std::string name, Reply reply);

  void grant_lease(const Request& request, Reply reply);
  void renew_lease(const Request& request, const std::string& id, Reply reply);
  void revoke_lease(const Request& request, const std::string& id, Reply reply);

  /// Whoever is cut off from now on did not go away.
  void stop() noexcept { is_stopping_ = true; }

 private:
  class Attempt;
  /// Who asks.
  struct Asker {
    auth::Access access;
    std::string address;
  };
  [[nodiscard]] static Asker asker_of(const Request& request) {
    return {.access = request.access, .address = request.caller.address};
  }
  /// A lease that lives and is somebody else's: to be answered as one that does not live. Of the
  /// store's thread.
  [[nodiscard]] bool is_foreign(const Asker& asker, core::LeaseId lease) const;

  [[nodiscard]] PendingAcquire::Context around() {
    return {.store = store_, .waiters = waiters_, .is_stopping = is_stopping_};
  }
  /// Proposes what is about a lease, unless it is somebody else's: then it is lost.
  void propose_for(core::LeaseId lease, const Request& request, core::Command command,
                   Store::Decision decided);
  /// The same reply, for the store's thread.
  [[nodiscard]] Reply at_home(Reply reply) const;

  Store& store_;
  boost::asio::any_io_executor home_;
  auth::Authorizer* authorizer_;
  WaiterRegistry waiters_;
  std::atomic<bool> is_stopping_ = false;
};

}  // namespace tenure::server::http
