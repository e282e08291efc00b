// One writer at a time on all machines: a named lock, the difference between a busy lock and an
// error, and a token that grows with each grant. The service of this example runs in the process;
// another URL selects another service.

#include <chrono>
#include <string>

#include <tenure/tenure.hpp>

#include "check.hpp"

using namespace std::chrono_literals;
using tenure::Client;
using tenure::Errc;

namespace {

/// Waits for the lock, works, and checks that the lock was held until the end.
tenure::Result<tenure::FencingToken> publish_report(const Client& client) {
  auto guard = client.mutex("reports/nightly").lock();
  if (!guard) {
    return std::unexpected(std::move(guard).error());
  }
  const auto token = guard->token();  // send it with every write
  const auto unlocked = guard->unlock();
  if (!unlocked) {
    return std::unexpected(unlocked.error());  // lost: another holder may have worked too
  }
  return token;
}

/// Works only if no other client does.
std::string rebuild_index_if_idle(const Client& client) {
  const auto guard =
      client.mutex("index/rebuild", {.ttl = 10s, .metadata = "index rebuild"}).try_lock_for(20ms);
  if (guard) {
    return "rebuilding";
  }
  return guard.error() == Errc::timed_out ? "another client is rebuilding"
                                          : "unknown: " + guard.error().detail;
}

}  // namespace

int main() {
  const auto client = tenure::connect("memory://").or_throw();

  const auto first = publish_report(client);
  const auto second = publish_report(client);
  check(first && second && *second > *first, "published twice; the second token is larger");

  check(rebuild_index_if_idle(client) == "rebuilding", "the index is free: rebuilding");
  const auto other = client.mutex("index/rebuild").lock().or_throw();
  check(rebuild_index_if_idle(client) == "another client is rebuilding",
        "the index is locked: another client is rebuilding");
  check(client.holders("index/rebuild").or_throw().front().owner == client.owner(),
        "every client can see the holder");
}
