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

/// Half-open interval [begin, end).
struct Interval {
  Time begin{};
  Time end{};

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Times in which a client considers a lease or hold valid: a union of intervals. A confirmation
/// before the end extends the last interval; a later one starts a new interval.
class Belief {
 public:
  void confirm(Time at, Time until);
  /// Ends the validity for good.
  void end(Time at);
  [[nodiscard]] bool covers(Time begin, Time end) const;
  [[nodiscard]] const std::vector<Interval>& parts() const noexcept { return parts_; }
  /// End of the last interval; 0 if there is none.
  [[nodiscard]] Time last() const noexcept { return parts_.empty() ? 0 : parts_.back().end; }

 private:
  std::vector<Interval> parts_;  ///< Sorted and disjoint.
  Time ended_ = never;
};

struct Lease {
  Belief belief;
  std::optional<Time> lost;  ///< Time of the loss, or of the client's death.
};

/// All events of one request.
struct Request {
  std::string id;
  std::string client;
  std::string owner;
  std::vector<Item> items;
  WaitPolicy policy = WaitPolicy::wait;
  Time invoked{};
  std::optional<Time> queued;
  std::optional<Time> answered;  ///< First observed grant.
  std::vector<Token> tokens;     ///< Distinct tokens that were observed.
  std::optional<Time> failed;
  std::string why;
  std::vector<std::string> cycle;
  std::optional<Time> left;  ///< Start of leaving the queue.
  std::optional<Time> release;
  std::optional<Time> released;
  struct Downgrade {
    Time at{};
    LockMode mode = LockMode::shared;
  };
  std::vector<Downgrade> downgrades;
  Belief belief;  ///< Empty without a grant.

  [[nodiscard]] bool is_granted() const noexcept { return answered.has_value(); }
  [[nodiscard]] Token token() const { return tokens.empty() ? 0 : tokens.front(); }
  /// Neither granted nor failed up to this time.
  [[nodiscard]] bool is_pending(Time at) const;
  /// The service itself rejected the request for good.
  [[nodiscard]] bool is_refused() const;
  /// May hold the lock, including a grant whose reply was lost.
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

/// Events of a history, indexed for the checks.
struct History {
  std::string properties = "MTSFREXWQL";
  Time bound = 0;  ///< 0: no bound is declared.
  Time ttl_max = 0;
  Time healed = 0;          ///< End of the last fault; `never`: faults lasted to the end.
  std::optional<Time> end;  ///< Time up to which the history is complete.
  std::map<std::string, Request> requests;
  std::map<std::string, Lease> leases;
  std::map<std::string, std::vector<Write>> writes;  ///< By resource.
  std::map<std::string, Watcher> watchers;
  std::vector<Read> reads;
  /// Requested items by place, in the order of invocation. A key space is a different place than
  /// the lock of the same name.
  std::map<std::string, std::vector<Use>> places;
  std::map<Kind, std::size_t> counts;
  /// Lines that contradict others, such as a reply to a request that was never invoked.
  std::vector<std::string> contradictions;
};

/// Builds the index. Events of different requests may be in any order; those of one request must be
/// ordered by time.
[[nodiscard]] History assemble(const Events& events);

[[nodiscard]] std::string place_of(const Item& item);
/// Whether two requests cannot hold these items at once. Permits never conflict; they are counted.
[[nodiscard]] bool conflict(const Item& left, const Item& right);
[[nodiscard]] bool overlap(const Range& left, const Range& right);
/// Human-readable text: "a in X", "2 of 3 permits of s".
[[nodiscard]] std::string describe(const Item& item);
[[nodiscard]] std::string describe(const Request& request);

/// Time after which the service cannot consider the request a holder: it was released, or its lease
/// has certainly ended.
[[nodiscard]] Time latest_end(const History& history, const Request& request);

}  // namespace tenure::history
