// One writer at a time, anywhere: a named lock, how to tell busy from broken, and a number that
// grows from holder to holder. Here the lock service is in this process; a URL makes it another
// one.

#include <chrono>
#include <string>

#include <tenure/tenure.hpp>

#include "promise.hpp"

using namespace std::chrono_literals;
using tenure::Client;
using tenure::Errc;

namespace {

/// Waits its turn, works, and wants to know how it ended.
tenure::Result<tenure::FencingToken> publish_report(const Client& client) {
  auto guard = client.mutex("reports/nightly").lock();
  if (!guard) {
    return std::unexpected(std::move(guard).error());
  }
  const auto token = guard->token();  // goes with every write
  const auto unlocked = guard->unlock();
  if (!unlocked) {
    return std::unexpected(unlocked.error());  // lost meanwhile: somebody may have raced us
  }
  return token;
}

/// Does it only if nobody else does.
std::string rebuild_index_if_idle(const Client& client) {
  const auto guard =
      client.mutex("index/rebuild", {.ttl = 10s, .note = "index rebuild"}).try_lock_for(20ms);
  if (guard) {
    return "rebuilding";
  }
  return guard.error() == Errc::timed_out ? "someone else is on it"
                                          : "cannot tell: " + guard.error().detail;
}

}  // namespace

int main() {
  const auto client = tenure::connect("memory://").value();

  const auto first = publish_report(client);
  const auto second = publish_report(client);
  promise(first && second && *second > *first, "published twice; the second token is larger");

  promise(rebuild_index_if_idle(client) == "rebuilding", "the index is free: rebuilding");
  const auto other = client.mutex("index/rebuild").lock().value();
  promise(rebuild_index_if_idle(client) == "someone else is on it",
          "the index is held: someone else is on it");
  promise(client.holders("index/rebuild").value().front().owner == client.owner(),
          "everybody can see who");
}
