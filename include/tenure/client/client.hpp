#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenure/client/election.hpp>
#include <tenure/client/lease.hpp>
#include <tenure/client/mutex.hpp>
#include <tenure/client/options.hpp>
#include <tenure/client/rw_lock.hpp>
#include <tenure/client/semaphore.hpp>
#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>

namespace tenure {

namespace detail {
class Session;   // src/client/session.hpp
struct Factory;  // src/client/factory.hpp
}  // namespace detail

/// Connection to one lock service, and factory of its locks.
///
/// A handle: copies refer to the same connection. Locks and guards keep it alive; when the last
/// reference is gone, everything it held is released and its threads end. Thread safe.
///
/// The factory functions never fail: the first call on a lock reports an invalid name or option.
class Client {
 public:
  /// A lock by its name, which need not exist before.
  [[nodiscard]] Mutex mutex(std::string name, LockOptions options = {}) const;
  [[nodiscard]] RwLock rw_lock(std::string name, LockOptions options = {}) const;
  [[nodiscard]] Semaphore semaphore(std::string name, SemaphoreSize size,
                                    LockOptions options = {}) const;
  /// All of these names, or none, acquired atomically: one guard, one token, no deadlock whatever
  /// the order of the names.
  [[nodiscard]] Mutex all_of(std::vector<std::string> names, LockOptions options = {}) const;
  /// The same as a reader-writer lock, without upgrade() and downgrade().
  [[nodiscard]] RwLock rw_all_of(std::vector<std::string> names, LockOptions options = {}) const;
  /// Leader election among all candidates under this name.
  [[nodiscard]] Election election(std::string name, LockOptions options = {}) const;

  /// all_of(names).lock()
  [[nodiscard]] Result<Guard> lock_all(std::vector<std::string> names,
                                       std::stop_token cancel = {}) const {
    return all_of(std::move(names)).lock(std::move(cancel));
  }

  /// Runs `work(guard)` or `work()` under the lock, then unlocks. Returns the result of `work`, or
  /// Errc::lease_lost if the lock was lost while it ran, so that the work may have raced.
  template <class Work>
  auto with_lock(std::string name, Work&& work, LockOptions options = {}) const;

  /// A lease for several locks: LockOptions::lease.
  [[nodiscard]] Result<Lease> lease(LeaseOptions options = {}) const;

  /// Watches the events of one lock, or of all locks with this prefix: WatchOptions::scope.
  [[nodiscard]] Result<Watch> watch(std::string name, WatchOptions options = {}) const;
  /// The current holders: one, or several readers or permits.
  [[nodiscard]] Result<std::vector<Holder>> holders(std::string name) const;

  /// Display name of this client: ConnectOptions::owner, or its default.
  [[nodiscard]] const std::string& owner() const noexcept;
  /// Whether the service is reachable. Leases survive an outage for up to their TTL.
  [[nodiscard]] bool is_connected() const noexcept;

 private:
  friend struct detail::Factory;
  explicit Client(std::shared_ptr<detail::Session> session) noexcept;

  std::shared_ptr<detail::Session> session_;
};

/// Opens a connection. The scheme of the URL selects the backend (docs/reference/backends.md):
///
///   memory://                           in this process, for this client only
///   memory://name                       in this process, shared by all clients with this name
///   tenure://host:port,host:port        tenured, one server or a cluster; link tenure::cluster
///   redis://host:port/database          one Redis server, rediss:// with TLS; link tenure::redis
///   redis+sentinel://host,host/service  Redis with Sentinel (rediss+sentinel://)
///   redis+cluster://host,host           Redis Cluster (rediss+cluster://)
///   redlock://host,host,host            Redlock on independent Redis servers (redlocks://)
///   etcd://host:port,host:port          etcd (etcds:// with TLS); link tenure::etcd
///   zookeeper://host:port,host:port     ZooKeeper; link tenure::zookeeper
///
/// Options may be part of the URL: `memory://a?key_prefix=test/&request_timeout=2s`.
/// Errc::invalid_argument names the position of a syntax error; Errc::unsupported reports a scheme
/// whose backend is not linked.
[[nodiscard]] Result<Client> connect(std::string_view url, ConnectOptions options = {});

template <class Work>
auto Client::with_lock(std::string name, Work&& work, LockOptions options) const {
  constexpr bool takes_guard = std::is_invocable_v<Work, const Guard&>;
  const auto run = [&](const Guard& guard) -> decltype(auto) {
    if constexpr (takes_guard) {
      return std::invoke(std::forward<Work>(work), guard);
    } else {
      return std::invoke(std::forward<Work>(work));
    }
  };
  using Value = std::decay_t<decltype(run(std::declval<const Guard&>()))>;

  auto guard = mutex(std::move(name), std::move(options)).lock();
  if (!guard) {
    return Result<Value>(std::unexpected(std::move(guard).error()));
  }
  const auto finish = [&](auto&& done) {
    auto unlocked = guard->unlock();
    return unlocked ? Result<Value>(std::forward<decltype(done)>(done)())
                    : Result<Value>(std::unexpected(std::move(unlocked).error()));
  };
  if constexpr (std::is_void_v<Value>) {
    run(*guard);
    return finish([] { return Result<Value>(); });
  } else {
    Value value = run(*guard);
    return finish([&] { return Result<Value>(std::move(value)); });
  }
}

}  // namespace tenure
