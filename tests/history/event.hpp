#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tenure/lock_mode.hpp>

/// Histories: what clients of a lock service saw, in their own words, and whether it keeps what we
/// promise. Knows nothing of the service, so that one checker judges simulations, real clusters and
/// every backend. Apart from the table of compatible modes it shares no code with what it judges.
namespace tenure::history {

/// Microseconds on one clock for the whole history: real time of a simulation, CLOCK_BOOTTIME of
/// the machine that the workload runs on.
using Time = std::int64_t;
using Token = std::uint64_t;

/// What a line tells. The names are those of the file.
enum class Kind : std::uint8_t {
  history,    ///< The first line: what is promised here, and the bounds.
  invoke,     ///< A client asks for items.
  queued,     ///< It was told that it waits.
  granted,    ///< It was told that it holds, and believes so until `until`.
  failed,     ///< It was told that it does not, or stopped asking; `why` says which.
  renewed,    ///< The lease `owner` is believed to live until `until`.
  lost,       ///< The client knows that the lease `owner` is lost.
  release,    ///< The client begins to give back what `request` holds. It believes no more.
  released,   ///< That was confirmed.
  downgrade,  ///< The client begins to weaken its only item to the mode in `items`.
  leave,      ///< The client begins to leave the queue.
  read,       ///< A linearizable look at a name, from `since` to `at`, showed these holders.
  write,      ///< Storage was asked to write with `token`. In the order of the storage.
  watching,   ///< `watcher` follows these names; it saw nothing yet.
  watch,      ///< It was told that a grant of `token` happened.
  died,       ///< The client is gone, and tells nothing any more.
  fault,      ///< Something was broken; `why` says what.
  healed,     ///< From now on everything works.
  end,        ///< Nothing was left out up to here.
};

struct Range {
  std::string start{};
  std::optional<std::string> end{};  ///< Not in it; nothing: no end.

  friend bool operator==(const Range&, const Range&) = default;
};

struct Permits {
  std::uint32_t wanted = 1;
  std::uint32_t capacity = 1;

  friend bool operator==(const Permits&, const Permits&) = default;
};

/// One thing that is asked for: a name in a mode, some permits, or a range of keys in a mode.
struct Item {
  std::string name{};
  LockMode mode = LockMode::exclusive;
  std::optional<Permits> permits{};
  std::optional<Range> range{};

  friend bool operator==(const Item&, const Item&) = default;
};

enum class Asking : std::uint8_t {
  wait,     ///< In the queue, in order.
  attempt,  ///< Now or not at all.
  reenter,  ///< Shares the hold that its owner has, or makes it stronger.
};

/// One line. Each kind uses some of the fields.
struct Event {
  Kind kind = Kind::end;
  Time at{};
  std::string client{};   ///< Who tells: invoke, died.
  std::string owner{};    ///< Whose lease: invoke, renewed, lost.
  std::string request{};  ///< Unique in the history; all that concerns one acquisition.
  std::vector<Item> items{};
  Asking asking = Asking::wait;
  std::optional<Token> token{};
  std::optional<Time> until{};  ///< granted, renewed: the end of the belief.
  std::string why{};
  std::vector<std::string> cycle{};  ///< failed by a deadlock: the requests in it.
  std::string resource{};            ///< write
  bool is_accepted = false;          ///< write
  std::string watcher{};
  std::vector<Token> holders{};  ///< read
  std::optional<Time> since{};   ///< read: when it was asked for.

  // history: what is promised. Letters of the properties to check, and bounds.
  std::string properties{};
  Time bound{};    ///< How soon a free lock is granted, a cycle resolved, an event told.
  Time ttl_max{};  ///< The longest lease.

  friend bool operator==(const Event&, const Event&) = default;
};

using Events = std::vector<Event>;

}  // namespace tenure::history
