// Several locks at once: all or none by name, a semaphore, a function under a lock, and
// std::scoped_lock over a remote and a local mutex.

#include <mutex>

#include <tenure/tenure.hpp>

#include "check.hpp"

using tenure::Errc;
using tenure::Guard;

int main() {
  const auto client = tenure::connect("memory://").or_throw();
  {
    const auto both = client.lock_all({"accounts/1", "accounts/2"}).or_throw();
    check(client.mutex("accounts/2").try_lock().error() == Errc::would_block,
          "both accounts are held by one guard");
  }

  const auto workers = client.semaphore("workers", {.capacity = 2});
  const auto one = workers.acquire().or_throw();
  const auto two = workers.acquire().or_throw();
  check(workers.try_acquire().error() == Errc::would_block, "two of two permits are held");

  const auto sum =
      client.with_lock("ledger", [](const Guard& guard) { return guard.owns_lock() ? 42 : 0; });
  check(sum == 42, "a function ran under the lock of the ledger");

  tenure::StdLockable remote(client.mutex("config"));
  std::mutex local;
  {
    const std::scoped_lock lock(remote, local);
    check(remote.guard().owns_lock(), "std::scoped_lock holds a remote and a local mutex");
  }
  check(client.mutex("config").try_lock().has_value(), "std::scoped_lock released both");
}
