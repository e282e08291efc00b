#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tenure/election.hpp>
#include <tenure/error.hpp>
#include <tenure/lease.hpp>
#include <tenure/mutex.hpp>
#include <tenure/options.hpp>
#include <tenure/rw_lock.hpp>
#include <tenure/semaphore.hpp>
#include <tenure/watch.hpp>

namespace tenure {

namespace detail {
class Session;  // src/client/session.hpp
}

/// A connection to one lock service. A handle: copies are the same connection, and locks and guards
/// keep it alive; with the last of them everything it held is given back and its threads end.
/// Thread safe.
///
/// The factories below never fail: what is wrong with a name or an option is told by the first call
/// on the lock.
class Client {
 public:
  /// By connect().
  explicit Client(std::shared_ptr<detail::Session> session) noexcept;

  /// A lock by its name; it need not exist before.
  [[nodiscard]] Mutex mutex(std::string name, LockOptions options = {}) const;
  [[nodiscard]] RwLock rw_lock(std::string name, LockOptions options = {}) const;
  [[nodiscard]] Semaphore semaphore(std::string name, SemaphoreSize size,
                                    LockOptions options = {}) const;
  /// All of these names at once, or none: one guard, one token. No order to obey, no deadlock.
  [[nodiscard]] Mutex all_of(std::vector<std::string> names, LockOptions options = {}) const;
  /// The same, to be read or written together. Not for upgrade() and downgrade(), which are of one.
  [[nodiscard]] RwLock rw_all_of(std::vector<std::string> names, LockOptions options = {}) const;
  /// One leader among all who campaign under this name.
  [[nodiscard]] Election election(std::string name, LockOptions options = {}) const;

  /// all_of(names).lock()
  [[nodiscard]] Result<Guard> lock_all(std::vector<std::string> names,
                                       std::stop_token cancel = {}) const {
    return all_of(std::move(names)).lock(std::move(cancel));
  }

  /// Runs `work(guard)`, or `work()`, under the lock and unlocks. Returns what `work` returned;
  /// Errc::lease_lost if the lock was lost meanwhile, so that the work may have raced.
  template <class Work>
  auto with_lock(std::string name, Work&& work, LockOptions options = {}) const;

  /// A lease of one's own, for several locks.
  [[nodiscard]] Result<Lease> lease(LeaseOptions options = {}) const;

  /// What happens to this lock, or to all whose names begin so: WatchOptions::scope.
  [[nodiscard]] Result<Watch> watch(std::string name, WatchOptions options = {}) const;
  /// Who holds it at the moment; readers of an RwLock are many.
  [[nodiscard]] Result<std::vector<Holder>> holders(std::string name) const;

  /// Who we are, for people.
  [[nodiscard]] const std::string& owner() const noexcept;
  /// Is the service within reach? Leases live on for a while if not.
  [[nodiscard]] bool is_connected() const noexcept;

 private:
  std::shared_ptr<detail::Session> session_;
};

/// Opens a connection. The scheme picks the backend (docs/reference/backends.md):
///
///   memory://            a lock service in this process, of this client alone
///   memory://name        the same, shared by all clients in this process that use the name
///   tenure://host:port   the lock service tenured; link tenure::cluster
///   redis://host:port    locks on a Redis server (rediss:// through TLS), and redis+sentinel://
///                        and redis+cluster:// on several; link tenure::redis
///
/// Options may stand in the URL too: `memory://a?key_prefix=test/&request_timeout=2s`.
/// Errc::invalid_argument with the position of what is wrong; Errc::unsupported for a scheme that
/// this build does not have.
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
