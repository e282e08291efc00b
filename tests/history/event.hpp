#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenure/lock_mode.hpp>

/// History checker: verifies from the observations of clients that a lock service kept its
/// guarantees. It knows nothing about the service, so that one checker serves simulations, real
/// clusters and every backend. It shares no code with the library except the table of lock modes.
namespace tenure::history {

/// Microseconds on the single clock of a history: virtual time of a simulation, or CLOCK_BOOTTIME
/// of the machine that runs the workload.
using Time = std::int64_t;
using Token = std::uint64_t;

/// Kind of an event. The names are those in the file.
enum class Kind : std::uint8_t {
  history,    ///< First line: declared properties and bounds.
  invoke,     ///< A client requests items.
  queued,     ///< The request was observed in the wait queue.
  granted,    ///< The grant was observed; the client considers it valid until `until`.
  failed,     ///< The request failed or was cancelled; `why` is the reason.
  renewed,    ///< The client considers the lease `owner` valid until `until`.
  lost,       ///< The client knows that the lease `owner` is lost.
  release,    ///< The client starts to release `request`; its validity ends here.
  released,   ///< The release was confirmed.
  downgrade,  ///< The client starts to downgrade its only item to the mode in `items`.
  leave,      ///< The client starts to leave the queue.
  read,       ///< A linearizable read of a name, from `since` to `at`, returned these holders.
  write,      ///< A write to the storage with `token`, in the order of the storage.
  watching,   ///< `watcher` has subscribed to these names.
  watch,      ///< `watcher` received the grant of `token`.
  died,       ///< The client stopped; no further events.
  fault,      ///< Start of a fault; `why` is its name.
  healed,     ///< End of all faults.
  end,        ///< The history is complete up to here.
};

struct Range {
  std::string start{};
  std::optional<std::string> end{};  ///< Exclusive; none: unbounded.

  friend bool operator==(const Range&, const Range&) = default;
};

struct Permits {
  std::uint32_t wanted = 1;
  std::uint32_t capacity = 1;

  friend bool operator==(const Permits&, const Permits&) = default;
};

/// Item of a request: a name in a mode, a number of permits, or a key range in a mode.
struct Item {
  std::string name{};
  LockMode mode = LockMode::exclusive;
  std::optional<Permits> permits{};
  std::optional<Range> range{};

  friend bool operator==(const Item&, const Item&) = default;
};

enum class WaitPolicy : std::uint8_t {
  wait,     ///< Waits in the FIFO queue.
  attempt,  ///< Fails at once if the lock is not available (try_lock).
  reenter,  ///< Re-enters or upgrades the hold of its owner.
};

/// One line of a history. Each kind uses some of the fields.
struct Event {
  Kind kind = Kind::end;
  Time at{};
  std::string client{};   ///< Observing client: invoke, died.
  std::string owner{};    ///< Lease: invoke, renewed, lost.
  std::string request{};  ///< Unique id of the request in the history.
  std::vector<Item> items{};
  WaitPolicy policy = WaitPolicy::wait;
  std::optional<Token> token{};
  std::optional<Time> until{};  ///< granted, renewed: end of the validity.
  std::string why{};
  std::vector<std::string> cycle{};  ///< failed by a deadlock: requests in the cycle.
  std::string resource{};            ///< write
  bool is_accepted = false;          ///< write
  std::string watcher{};
  std::vector<Token> holders{};  ///< read
  std::optional<Time> since{};   ///< read: start of the read.

  // history: letters of the properties to check, and bounds.
  std::string properties{};
  Time
      bound{};  ///< Maximum delay of a grant of a free lock, of a deadlock resolution, of an event.
  Time ttl_max{};  ///< Longest TTL of any lease.

  friend bool operator==(const Event&, const Event&) = default;
};

using Events = std::vector<Event>;

}  // namespace tenure::history
