#include "support/model/reference.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace tenure::model {

namespace {

bool conflict(TxnId a, LockMode mode_a, TxnId b, LockMode mode_b) {
  return a != b && !compatible_with(mode_a, mode_b);
}

}  // namespace

Target target_of(const Thing& thing) {
  return std::visit([](const auto& value) -> Target { return value; }, thing);
}

bool is_range(const Thing& thing) {
  return std::holds_alternative<KeysOf>(thing) || std::holds_alternative<BytesOf>(thing);
}

bool one_queue(const Thing& a, const Thing& b) {
  if (a.index() != b.index()) {
    return false;
  }
  if (const auto* keys = std::get_if<KeysOf>(&a)) {
    return keys->space == std::get<KeysOf>(b).space;
  }
  if (const auto* keys = std::get_if<BytesOf>(&a)) {
    return keys->space == std::get<BytesOf>(b).space;
  }
  if (const auto* number = std::get_if<ResourceId>(&a)) {
    return *number == std::get<ResourceId>(b);
  }
  return std::get<std::string>(a) == std::get<std::string>(b);
}

bool lies_inside(const Thing& inner, const Thing& outer) {
  if (!one_queue(inner, outer)) {
    return false;
  }
  if (const auto* keys = std::get_if<KeysOf>(&outer)) {
    return keys->range.contains(std::get<KeysOf>(inner).range);
  }
  if (const auto* keys = std::get_if<BytesOf>(&outer)) {
    return keys->range.contains(std::get<BytesOf>(inner).range);
  }
  return true;
}

bool same(const Thing& a, const Thing& b) {
  return lies_inside(a, b) && lies_inside(b, a);
}

bool share_a_key(const Thing& a, const Thing& b) {
  if (!one_queue(a, b)) {
    return false;
  }
  if (const auto* keys = std::get_if<KeysOf>(&a)) {
    return keys->range.overlaps(std::get<KeysOf>(b).range);
  }
  if (const auto* keys = std::get_if<BytesOf>(&a)) {
    return keys->range.overlaps(std::get<BytesOf>(b).range);
  }
  return true;
}

std::string to_string(Answer answer) {
  switch (answer) {
    case Answer::granted: return "granted";
    case Answer::waiting: return "waiting";
    case Answer::would_block: return "would_block";
    case Answer::deadlock: return "deadlock";
    case Answer::not_held: return "not_held";
    case Answer::invalid_argument: return "invalid_argument";
  }
  return "unknown";
}

// Asking ------------------------------------------------------------------------------------------

Answer Reference::try_acquire(TxnId txn, const Thing& thing, LockMode mode) {
  if (is_victim(txn)) {
    mark_notified(txn);
    return Answer::deadlock;
  }
  const auto held = mode_around(txn, thing);
  const bool is_covered = held && covers(*held, mode);
  if (!is_covered && !is_admissible(new_wait(txn, thing, mode))) {
    return Answer::would_block;
  }
  take(txn, thing, mode);
  return Answer::granted;
}

Answer Reference::request(TxnId txn, const Thing& thing, LockMode mode) {
  if (is_victim(txn)) {
    mark_notified(txn);
    return Answer::deadlock;
  }
  const auto granted = std::ranges::find_if(unclaimed_, [&](const Unclaimed& known) {
    return known.txn == txn && same(known.thing, thing) && known.wanted == mode;
  });
  if (granted != unclaimed_.end()) {
    unclaimed_.erase(granted);
    return Answer::granted;
  }
  const bool waits_already = std::ranges::any_of(waits_, [&](const Wait& wait) {
    return wait.txn == txn && same(wait.thing, thing) && wait.wanted == mode;
  });
  if (waits_already) {
    return Answer::waiting;
  }
  cancel(txn, thing);  // in another mode: replaced
  if (try_acquire(txn, thing, mode) == Answer::granted) {
    return Answer::granted;
  }
  const Wait wait = new_wait(txn, thing, mode);
  waits_.insert(waits_.begin() + static_cast<std::ptrdiff_t>(position_of(wait)), wait);
  return Answer::waiting;
}

void Reference::cancel_wait(TxnId txn) {
  std::vector<Thing> pending;
  for (const Wait& wait : waits_) {
    if (wait.txn == txn) {
      pending.push_back(wait.thing);
    }
  }
  for (const Unclaimed& granted : unclaimed_) {
    if (granted.txn == txn) {
      pending.push_back(granted.thing);
    }
  }
  std::ranges::for_each(pending, [&](const Thing& thing) { cancel(txn, thing); });
}

/// Ends the pending request for `thing`, if there is one, as if it had never been made.
void Reference::cancel(TxnId txn, const Thing& thing) {
  const auto is_it = [&](const auto& entry) {
    return entry.txn == txn && same(entry.thing, thing);
  };
  std::erase_if(waits_, is_it);
  const auto granted = std::ranges::find_if(unclaimed_, is_it);
  if (granted != unclaimed_.end()) {
    undo(*granted);
    unclaimed_.erase(granted);
  }
  grant_waiters(thing);
}

/// What was acquired since may lean on the stronger mode: then that stays.
void Reference::undo(const Unclaimed& granted) {
  for (Hold& hold : holds_) {
    const bool is_it = hold.txn == granted.txn && same(hold.thing, granted.thing);
    if (is_it && !is_range(hold.thing) && hold.count == granted.count_then) {
      hold.mode = granted.before.value_or(hold.mode);
    }
  }
  release_one(granted.txn, granted.thing);
}

/// What the transaction holds on `thing` and on ranges that contain it.
std::optional<LockMode> Reference::mode_around(TxnId txn, const Thing& thing) const {
  std::optional<LockMode> held;
  for (const Hold& hold : holds_) {
    if (hold.txn == txn && lies_inside(thing, hold.thing)) {
      held = held ? join(*held, hold.mode) : hold.mode;
    }
  }
  return held;
}

Wait Reference::new_wait(TxnId txn, const Thing& thing, LockMode mode) const {
  const auto held = mode_around(txn, thing);
  return {.txn = txn,
          .thing = thing,
          .wanted = mode,
          .mode = held && !is_range(thing) ? join(*held, mode) : mode,
          .upgrade = held.has_value()};
}

std::set<TxnId> Reference::holders_against(const Wait& wait) const {
  std::set<TxnId> against;
  for (const Hold& hold : holds_) {
    if (share_a_key(hold.thing, wait.thing) && conflict(hold.txn, hold.mode, wait.txn, wait.mode)) {
      against.insert(hold.txn);
    }
  }
  return against;
}

std::set<TxnId> Reference::waiters_against(const Wait& wait) const {
  std::set<TxnId> against;
  const std::size_t position = position_of(wait);
  for (std::size_t before = 0; before < position; ++before) {
    const Wait& earlier = waits_[before];
    if (share_a_key(earlier.thing, wait.thing) &&
        conflict(earlier.txn, earlier.mode, wait.txn, wait.mode)) {
      against.insert(earlier.txn);
    }
  }
  return against;
}

/// Its position, or the one it would get if it were queued now: upgrades precede all others.
std::size_t Reference::position_of(const Wait& wait) const {
  const auto itself = std::ranges::find(waits_, &wait, [](const Wait& other) { return &other; });
  const auto plain = std::ranges::find(waits_, false, &Wait::upgrade);
  const auto new_wait = wait.upgrade ? plain : waits_.end();
  return static_cast<std::size_t>((itself != waits_.end() ? itself : new_wait) - waits_.begin());
}

bool Reference::is_admissible(const Wait& wait) const {
  return holders_against(wait).empty() && waiters_against(wait).empty();
}

bool Reference::is_blocked_by_queue_only(const Wait& wait) const {
  return holders_against(wait).empty() && !waiters_against(wait).empty();
}

// Releases ----------------------------------------------------------------------------------------

Answer Reference::release(TxnId txn, const Thing& thing) {
  if (!release_one(txn, thing)) {
    return Answer::not_held;
  }
  grant_waiters(thing);
  return Answer::granted;
}

std::size_t Reference::release_all(TxnId txn) {
  std::vector<Thing> changed;
  std::size_t released = 0;
  for (const Hold& hold : holds_) {
    if (hold.txn == txn) {
      changed.push_back(hold.thing);
      ++released;
    }
  }
  for (const Wait& wait : waits_) {
    if (wait.txn == txn) {
      changed.push_back(wait.thing);
    }
  }
  const auto is_own = [&](const auto& entry) { return entry.txn == txn; };
  std::erase_if(holds_, is_own);
  std::erase_if(waits_, is_own);
  std::erase_if(unclaimed_, is_own);
  std::ranges::for_each(changed, [&](const Thing& thing) { grant_waiters(thing); });

  const auto victim = victims_.find(txn);
  if (victim != victims_.end()) {
    // A victim that was not notified yet stays one, unless there was nothing to release.
    if (victim->second == Notified::yes || released == 0) {
      victims_.erase(victim);
    }
  }
  return released;
}

Answer Reference::downgrade(TxnId txn, const Thing& thing, LockMode mode) {
  const auto last = std::ranges::find_if(holds_.rbegin(), holds_.rend(), [&](const Hold& hold) {
    return hold.txn == txn && same(hold.thing, thing);
  });
  if (last == holds_.rend()) {
    return Answer::not_held;
  }
  if (!covers(last->mode, mode)) {
    return Answer::invalid_argument;
  }
  last->mode = mode;
  grant_waiters(thing);
  return Answer::granted;
}

/// One acquisition; for a range that of the exact range that was acquired last.
bool Reference::release_one(TxnId txn, const Thing& thing) {
  const auto last = std::ranges::find_if(holds_.rbegin(), holds_.rend(), [&](const Hold& hold) {
    return hold.txn == txn && same(hold.thing, thing);
  });
  if (last == holds_.rend()) {
    return false;
  }
  if (--last->count == 0) {
    holds_.erase(std::next(last).base());
  }
  return true;
}

/// Returns how often the thing is held now; an entry of a range, once.
std::uint32_t Reference::take(TxnId txn, const Thing& thing, LockMode mode) {
  if (!is_range(thing)) {
    for (Hold& hold : holds_) {
      if (hold.txn == txn && same(hold.thing, thing)) {
        hold.mode = join(hold.mode, mode);
        return ++hold.count;
      }
    }
  }
  holds_.push_back({.txn = txn, .thing = thing, .mode = mode});
  return 1;
}

/// Hand-over: grants admissible waiters in queue order.
void Reference::grant_waiters(const Thing& changed) {
  for (std::size_t position = 0; position < waits_.size();) {
    if (one_queue(waits_[position].thing, changed) && is_admissible(waits_[position])) {
      grant(waits_[position]);
    } else {
      ++position;
    }
  }
}

void Reference::grant(const Wait& wait) {
  const Wait granted = wait;
  std::erase_if(waits_, [&](const Wait& other) {
    return other.txn == granted.txn && same(other.thing, granted.thing);
  });
  const auto before = mode_held(granted.txn, granted.thing);
  const std::uint32_t count = take(granted.txn, granted.thing, granted.mode);
  unclaimed_.push_back({granted.txn, granted.thing, granted.wanted, before, count});
}

// Deadlocks ---------------------------------------------------------------------------------------

void Reference::make_victim(TxnId txn) {
  std::vector<Thing> changed;
  for (const Wait& wait : waits_) {
    if (wait.txn == txn) {
      changed.push_back(wait.thing);
    }
  }
  std::erase_if(waits_, [&](const Wait& wait) { return wait.txn == txn; });
  victims_.emplace(txn, Notified::no);
  std::ranges::for_each(changed, [&](const Thing& thing) { grant_waiters(thing); });
}

void Reference::mark_notified(TxnId txn) {
  victims_.at(txn) = Notified::yes;
}

Edges Reference::waits_for() const {
  Edges edges;
  for (const Wait& wait : waits_) {
    edges[wait.txn].merge(holders_against(wait));
    edges[wait.txn].merge(waiters_against(wait));
  }
  return edges;
}

bool is_on_cycle(const Edges& edges, TxnId start) {
  std::set<TxnId> reached;
  std::vector<TxnId> open{start};
  while (!open.empty()) {
    const auto from = edges.find(open.back());
    open.pop_back();
    if (from == edges.end()) {
      continue;
    }
    for (const TxnId next : from->second) {
      if (next == start) {
        return true;
      }
      if (reached.insert(next).second) {
        open.push_back(next);
      }
    }
  }
  return false;
}

bool has_cycle(Edges edges) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& [waiter, holders] : edges) {
      const auto gone =
          std::erase_if(holders, [&](TxnId holder) { return !edges.contains(holder); });
      changed = changed || gone > 0;
    }
    changed =
        std::erase_if(edges, [](const auto& edge) { return edge.second.empty(); }) > 0 || changed;
  }
  return !edges.empty();
}

bool is_cycle(const Edges& edges, const std::vector<TxnId>& cycle) {
  if (cycle.size() < 2) {
    return false;
  }
  for (std::size_t position = 0; position < cycle.size(); ++position) {
    const auto from = edges.find(cycle[position]);
    if (from == edges.end() || !from->second.contains(cycle[(position + 1) % cycle.size()])) {
      return false;
    }
  }
  return true;
}

// Looking -----------------------------------------------------------------------------------------

std::size_t Reference::holder_count(const Thing& thing) const {
  std::set<TxnId> holders;
  for (const Hold& hold : holds_) {
    if (same(hold.thing, thing)) {
      holders.insert(hold.txn);
    }
  }
  return holders.size();
}

std::optional<LockMode> Reference::mode_held(TxnId txn, const Thing& thing) const {
  std::optional<LockMode> held;
  for (const Hold& hold : holds_) {
    if (hold.txn == txn && same(hold.thing, thing)) {
      held = held ? join(*held, hold.mode) : hold.mode;
    }
  }
  return held;
}

std::size_t Reference::range_count(ResourceId space) const {
  return static_cast<std::size_t>(std::ranges::count_if(holds_, [&](const Hold& hold) {
    const auto* keys = std::get_if<KeysOf>(&hold.thing);
    const auto* bytes = std::get_if<BytesOf>(&hold.thing);
    return (keys != nullptr && keys->space == space) || (bytes != nullptr && bytes->space == space);
  }));
}

std::size_t Reference::waiting_count() const {
  std::set<TxnId> waiting;
  for (const Wait& wait : waits_) {
    waiting.insert(wait.txn);
  }
  return waiting.size();
}

bool Reference::is_pending(TxnId txn, const Thing& thing) const {
  return has_unclaimed(txn, thing) || std::ranges::any_of(waits_, [&](const Wait& wait) {
           return wait.txn == txn && same(wait.thing, thing);
         });
}

bool Reference::has_unclaimed(TxnId txn, const Thing& thing) const {
  return std::ranges::any_of(unclaimed_, [&](const Unclaimed& entry) {
    return entry.txn == txn && same(entry.thing, thing);
  });
}

}  // namespace tenure::model
