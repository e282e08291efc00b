#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <tenure/ids.hpp>
#include <tenure/lock_manager/target.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure::model {

/// A Target that owns its name, so that commands can be stored and printed.
using Thing = std::variant<ResourceId, std::string, KeysOf, BytesOf>;

[[nodiscard]] Target target_of(const Thing& thing);
[[nodiscard]] bool is_range(const Thing& thing);
/// The same resource, or the same range of the same space.
[[nodiscard]] bool same(const Thing& a, const Thing& b);
/// The same resource, or keys of one kind of one space: these stand in one queue.
[[nodiscard]] bool one_queue(const Thing& a, const Thing& b);
/// The same resource, or ranges of one space that share a key: only these can conflict.
[[nodiscard]] bool share_a_key(const Thing& a, const Thing& b);
/// The same resource, or a range with no key outside `outer`.
[[nodiscard]] bool lies_inside(const Thing& inner, const Thing& outer);

enum class Answer : std::uint8_t {
  granted,
  waiting,
  would_block,
  deadlock,
  not_held,
  invalid_argument,
};

[[nodiscard]] std::string to_string(Answer answer);

/// A resource once per transaction with a count; a range once per acquisition, oldest first.
struct Hold {
  TxnId txn;
  Thing thing;
  LockMode mode;
  std::uint32_t count = 1;
};

/// A request that is not granted yet.
struct Wait {
  TxnId txn;
  Thing thing;
  LockMode wanted;       ///< As asked for.
  LockMode mode;         ///< For a resource, joined with what was held then.
  bool upgrade = false;  ///< Held the thing at the request, so it precedes requests of non-holders.
};

/// A request that was granted in the queue and not yet asked about again.
struct Unclaimed {
  TxnId txn;
  Thing thing;
  LockMode wanted;
  std::optional<LockMode> before;  ///< What was held until then,
  std::uint32_t count_then = 0;    ///< and how often right after the grant.
};

/// Wait-for graph: the transactions that each transaction waits for.
using Edges = std::map<TxnId, std::set<TxnId>>;

/// Reference model of docs/reference/lock_manager.md: three lists, linear scans, no threads.
/// A copy is a checkpoint of the state.
///
/// Deadlocks are not resolved here, since with several cycles at once the documentation leaves the
/// choice open: `waits_for` shows the graph, and the test applies what the manager chose by `grant`
/// and `make_victim`, after it checked that the choice was lawful.
class Reference {
 public:
  [[nodiscard]] Answer try_acquire(TxnId txn, const Thing& thing, LockMode mode);
  [[nodiscard]] Answer request(TxnId txn, const Thing& thing, LockMode mode);
  void cancel_wait(TxnId txn);
  [[nodiscard]] Answer release(TxnId txn, const Thing& thing);
  [[nodiscard]] std::size_t release_all(TxnId txn);
  [[nodiscard]] Answer downgrade(TxnId txn, const Thing& thing, LockMode mode);

  [[nodiscard]] std::size_t holder_count(const Thing& thing) const;
  [[nodiscard]] std::optional<LockMode> mode_held(TxnId txn, const Thing& thing) const;
  [[nodiscard]] std::size_t range_count(ResourceId space) const;
  [[nodiscard]] std::size_t waiting_count() const;

  /// In the order of acquisition, and in the order of the queues.
  [[nodiscard]] const std::vector<Hold>& holds() const { return holds_; }
  [[nodiscard]] const std::vector<Wait>& waits() const { return waits_; }

  /// Whether `txn` has a request for `thing` that was neither claimed nor cancelled.
  [[nodiscard]] bool is_pending(TxnId txn, const Thing& thing) const;
  [[nodiscard]] bool has_unclaimed(TxnId txn, const Thing& thing) const;

  [[nodiscard]] Edges waits_for() const;
  /// Transactions that this wait conflicts with: holders, and waiters ahead of it.
  [[nodiscard]] std::set<TxnId> holders_against(const Wait& wait) const;
  [[nodiscard]] std::set<TxnId> waiters_against(const Wait& wait) const;
  /// Conflicts with waiters, not with holders.
  [[nodiscard]] bool is_blocked_by_queue_only(const Wait& wait) const;

  void grant(const Wait& wait);
  void make_victim(TxnId txn);
  /// A call of the victim has returned the deadlock error.
  void mark_notified(TxnId txn);
  [[nodiscard]] bool is_victim(TxnId txn) const { return victims_.contains(txn); }

 private:
  enum class Notified : std::uint8_t { no, yes };

  [[nodiscard]] Wait new_wait(TxnId txn, const Thing& thing, LockMode mode) const;
  [[nodiscard]] std::optional<LockMode> mode_around(TxnId txn, const Thing& thing) const;
  [[nodiscard]] bool is_admissible(const Wait& wait) const;
  [[nodiscard]] std::size_t position_of(const Wait& wait) const;
  std::uint32_t take(TxnId txn, const Thing& thing, LockMode mode);
  bool release_one(TxnId txn, const Thing& thing);
  void undo(const Unclaimed& granted);
  void cancel(TxnId txn, const Thing& thing);
  void grant_waiters(const Thing& changed);

  std::vector<Hold> holds_;
  std::vector<Wait> waits_;
  std::vector<Unclaimed> unclaimed_;
  std::map<TxnId, Notified> victims_;
};

/// Is there a way from `start` back to it?
[[nodiscard]] bool is_on_cycle(const Edges& edges, TxnId start);
/// Is there a cycle at all? Kahn: removes transactions that wait for no other
/// until nothing changes.
[[nodiscard]] bool has_cycle(Edges edges);
/// Does each wait for the next, and the last for the first?
[[nodiscard]] bool is_cycle(const Edges& edges, const std::vector<TxnId>& cycle);

}  // namespace tenure::model
