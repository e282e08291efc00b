#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "history/event.hpp"

namespace tenure::history {

inline constexpr Time never = std::numeric_limits<Time>::max();

/// From `begin` up to and without `end`.
struct Interval {
  Time begin{};
  Time end{};

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Believing goes on while it is confirmed in time. What was confirmed too late begins anew.
class Belief {
 public:
  void confirm(Time at, Time until);
  /// From then on nothing is believed any more.
  void end(Time at);
  [[nodiscard]] bool covers(Time begin, Time end) const;
  [[nodiscard]] const std::vector<Interval>& parts() const noexcept { return parts_; }
  /// The last moment of it; 0 if there never was one.
  [[nodiscard]] Time last() const noexcept { return parts_.empty() ? 0 : parts_.back().end; }

 private:
  std::vector<Interval> parts_;  ///< In order, without overlaps.
  Time ended_ = never;
};

struct Lease {
  Belief belief;
  std::optional<Time> lost;  ///< Or its client died.
};

/// All that is known of one acquisition.
struct Request {
  std::string id;
  std::string client;
  std::string owner;
  std::vector<Item> items;
  Asking asking = Asking::wait;
  Time invoked{};
  std::optional<Time> queued;
  std::optional<Time> answered;  ///< When it was first told of its grant.
  std::vector<Token> tokens;     ///< All different ones that it was told.
  std::optional<Time> failed;
  std::string why;
  std::vector<std::string> cycle;
  std::optional<Time> left;  ///< Began to.
  std::optional<Time> release;
  std::optional<Time> released;
  struct Weaker {
    Time at{};
    LockMode mode = LockMode::shared;
  };
  std::vector<Weaker> weaker;
  Belief belief;  ///< Empty if it was not granted.

  [[nodiscard]] bool is_granted() const noexcept { return answered.has_value(); }
  [[nodiscard]] Token token() const { return tokens.empty() ? 0 : tokens.front(); }
  /// It was neither granted nor refused up to this time.
  [[nodiscard]] bool is_pending(Time at) const;
  /// Told that it would never be granted, by the service itself.
  [[nodiscard]] bool is_refused() const;
  /// Whether it may hold, for all that is known: the service may have granted it and not told.
  [[nodiscard]] bool may_hold() const;
};

/// One item of one request.
struct Use {
  const Request* request{};
  const Item* item{};
};

struct Watched {
  Time at{};
  std::string name;
  std::string owner;
  std::string request;
  Token token{};
};

struct Watcher {
  std::vector<std::string> names;
  Time since{};
  bool is_alive = true;
  std::vector<Watched> events;
};

struct Write {
  Time at{};
  Token token{};
  bool is_accepted = false;
};

struct Read {
  Time since{};
  Time at{};
  std::string name;
  std::vector<Token> holders;
};

/// A history as the checks want it.
struct History {
  std::string properties = "MTSFREXWQL";
  Time bound = 0;  ///< 0: nothing is promised about how long things take.
  Time ttl_max = 0;
  Time healed = 0;          ///< Nothing was broken after it; never: to the end.
  std::optional<Time> end;  ///< Up to here it is complete.
  std::map<std::string, Request> requests;
  std::map<std::string, Lease> leases;
  std::map<std::string, std::vector<Write>> writes;  ///< By resource.
  std::map<std::string, Watcher> watchers;
  std::vector<Read> reads;
  /// Who asked for what, by place and in the order of asking. A space of keys is another place than
  /// the lock of that name.
  std::map<std::string, std::vector<Use>> places;
  std::map<Kind, std::size_t> counts;
  /// Lines that contradict themselves, such as an answer to what was never asked.
  std::vector<std::string> nonsense;
};

/// Events in any order; each lists what happened to its request in the order of time.
[[nodiscard]] History assemble(const Events& events);

[[nodiscard]] std::string place_of(const Item& item);
/// May two requests not hold these at once? Permits are counted instead.
[[nodiscard]] bool conflict(const Item& left, const Item& right);
[[nodiscard]] bool overlap(const Range& left, const Range& right);
/// As people write it: "a in X", "2 of 3 permits of s".
[[nodiscard]] std::string words(const Item& item);
[[nodiscard]] std::string words(const Request& request);

/// When the service can no longer hold anything of this request: it was given back, or the lease it
/// hangs on is over for sure.
[[nodiscard]] Time surely_over(const History& history, const Request& request);

}  // namespace tenure::history
