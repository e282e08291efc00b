#include "lock_manager/lock_table.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include <tenure/lock_manager/text.hpp>

namespace tenure::detail {

namespace {

/// First id that begin() generates, out of the range of ids that engines choose.
constexpr std::uint64_t first_own_txn = std::uint64_t{1} << 63U;

/// Number of locks that release_all() releases before it yields the latch of its stripe, so that
/// other transactions of the stripe are not blocked for long.
constexpr std::size_t released_at_once = 1024;

/// Number of shards: a power of two. The default of 128 per CPU makes it unlikely that two running
/// threads need the same latch; each shard takes one cache line, so 4096 shards take 256 KiB.
std::size_t shard_count(const LockManagerOptions& options) {
  if (options.shards) {
    return std::bit_ceil(std::max<std::size_t>(*options.shards, 1));
  }
  constexpr std::size_t per_cpu = 128;
  constexpr std::size_t least = 256;
  constexpr std::size_t most = 4096;
  return std::bit_ceil(std::clamp(per_cpu * std::thread::hardware_concurrency(), least, most));
}

Limits limits_of(const LockManagerOptions& options) {
  return {.waiters_per_lock_max = options.waiters_per_lock_max,
          .locks_per_transaction_max = options.locks_per_transaction_max};
}

[[nodiscard]] bool has_good_name(const Target& target) {
  const auto* const name = std::get_if<std::string_view>(&target);
  return name == nullptr || (!name->empty() && name->size() <= name_bytes_max);
}

std::unexpected<Error> fail_name(const Target& target) {
  return fail(Errc::invalid_argument,
              "a name has 1 to " + std::to_string(name_bytes_max) + " bytes; this one has " +
                  std::to_string(std::get<std::string_view>(target).size()));
}

/// Deadlock error. Lists at most 16 members, because a cycle may have thousands.
std::unexpected<Error> fail_deadlock(const Deadlock& deadlock) {
  std::string text = "transaction " + to_string(deadlock.victim) + " is the victim of the cycle ";
  constexpr std::size_t shown_max = 16;
  for (std::size_t i = 0; i < std::min(deadlock.cycle.size(), shown_max); ++i) {
    text += to_string(deadlock.cycle[i]) + " -> ";
  }
  text += deadlock.cycle.size() > shown_max ? "... -> " : "";
  text += to_string(deadlock.cycle.front()) + "; release everything and retry";
  return fail(Errc::deadlock, std::move(text));
}

Error exhausted_error() {
  return {.code = Errc::resource_exhausted,
          .detail =
              "too many waiters on this lock, too many locks in this transaction, or too "
              "many acquisitions of this lock: see LockManagerOptions"};
}

[[nodiscard]] bool is_success(Attempt attempt) {
  return attempt == Attempt::acquired || attempt == Attempt::reacquired;
}

/// Sets the target of a waiter.
void set_target(Waiter& waiter, std::uint64_t resource) {
  waiter.resource = resource;
}
template <class Keys>
void set_target(Waiter& /*waiter*/, const Keys& /*keys*/) {
  // The table sets the entry of a range waiter.
}

}  // namespace

LockTable::LockTable(const LockManagerOptions& options)
    : options_(options),
      numbers_({.shards = shard_count(options), .limits = limits_of(options)}),
      names_(
          {.shards = shard_count(options), .limits = limits_of(options), .names = &known_names_}),
      // Fewer shards for ranges, because the space alone selects the shard.
      keys_(std::min<std::size_t>(shard_count(options), 64), RangeKind::keys, limits_of(options)),
      bytes_(std::min<std::size_t>(shard_count(options), 64), RangeKind::bytes, limits_of(options)),
      detector_(txns_, options_),
      next_txn_(first_own_txn) {}

// Numbered resources come first: they are the hot path. A name is referenced during the call, so
// that its number stays valid until the lock itself holds a reference.
template <class Use>
auto LockTable::with_table(const Target& target, Use&& use) {
  if (const auto* const resource = std::get_if<ResourceId>(&target)) [[likely]] {
    return use(numbers_, resource->get());
  }
  if (const auto* const keys = std::get_if<KeysOf>(&target)) {
    return use(keys_, *keys);
  }
  if (const auto* const bytes = std::get_if<BytesOf>(&target)) {
    return use(bytes_, *bytes);
  }
  const NameTable::Reference name(known_names_, std::get<std::string_view>(target));
  return use(names_, name.id());
}

// A pinned record is never idle, so it is neither destroyed nor reused while a handle refers to it.
Txn& LockTable::pin(const TransactionOptions& options) {
  const TxnId id = options.id ? *options.id : TxnId(next_txn_.fetch_add(1));
  const auto txn = txns_.enter(id);
  ++txn->pins;
  txn->age = options.age.value_or(id.get());
  txn->priority = options.priority;
  return *txn;
}

void LockTable::unpin(Txn& txn) {
  release_all({.id = txn.id, .pinned = &txn});
  // Enters by id, so that the record becomes the warm one of its stripe when it is idle.
  const auto entered = txns_.enter(txn.id);
  --entered->pins;
  entered->verdict.reset();
}

// Fast path of every acquire: one attempt without a waiter. The slow path repeats it with a waiter,
// so that an uncontended acquire never constructs one.
template <class Table, class Key>
[[gnu::always_inline]] inline Attempt LockTable::attempt(Table& table, const Key& key,
                                                         TxnRef caller, LockMode mode) {
  const auto txn = enter(caller);
  // A victim acquires nothing until it has released its locks, or the cycle would stay.
  if (txn->verdict != nullptr) [[unlikely]] {
    return Attempt::victim;
  }
  const Attempt outcome = table.acquire(*txn, key, mode, nullptr);
  if (!is_success(outcome)) [[unlikely]] {
    return outcome;
  }
  ++txn->work;
  return txn->waits.empty() ? outcome : Attempt::acquired_while_waiting;
}

// A victim is reported by the first call that finds it, and then counts as notified: from then on,
// a release of all locks ends its state of victim.
Result<void> LockTable::result_of(Attempt attempt, TxnRef caller) {
  switch (attempt) {
    case Attempt::acquired:
    case Attempt::reacquired: return {};
    case Attempt::acquired_while_waiting:
      // Another thread of this transaction waits, so a wait for the new hold may close a cycle.
      if (options_.detection == Detection::at_wait) {
        detector_.check(caller.id, std::nullopt);
      }
      return {};
    case Attempt::blocked:
    case Attempt::queued: return fail(Errc::would_block);
    case Attempt::exhausted: return std::unexpected(exhausted_error());
    case Attempt::victim: break;
  }
  const auto txn = enter(caller);
  // Another thread of the transaction has released all locks since the attempt.
  if (txn->verdict == nullptr) {
    return fail(Errc::deadlock,
                "this transaction was chosen as the victim of a deadlock, and has ended since");
  }
  txn->notified = true;
  return fail_deadlock(*txn->verdict);
}

// Slow path of a blocking acquire. The waiter is on the stack of this thread. It is queued and
// listed under the stripe of the transaction, so that a detector or release_all() finds it; the
// detector runs after the stripe is released, because it latches other stripes.
template <class Table, class Key>
Result<void> LockTable::wait(Table& table, const Key& key, const Wait& asked) {
  const auto& [caller, mode, options] = asked;
  Waiter waiter(caller.id, mode, table);
  waiter.since = std::chrono::steady_clock::now();
  set_target(waiter, key);
  bool may_close = false;
  Attempt outcome{};
  {
    const auto txn = enter(caller);
    if (txn->verdict != nullptr) {
      txn->notified = true;
      return fail_deadlock(*txn->verdict);
    }
    outcome = table.acquire(*txn, key, mode, &waiter);
    if (outcome == Attempt::queued) {
      txn->waits.push_back(&waiter);
      may_close = options_.detection == Detection::at_wait && may_close_a_cycle(*txn);
    } else if (is_success(outcome)) {
      // The lock became free after the first attempt.
      ++txn->work;
      outcome = txn->waits.empty() ? outcome : Attempt::acquired_while_waiting;
    }
  }
  if (outcome != Attempt::queued) {
    return result_of(outcome, caller);
  }
  // A deadline in the past is a try: it neither searches nor blocks.
  const bool is_late = options.deadline && waiter.since >= *options.deadline;
  if (may_close && !is_late) {
    detector_.check(caller.id, options.victim);
  }
  if (!is_late) {
    waiter.sleep(options);
  }
  return finish_wait(waiter, caller, options);
}

Result<void> LockTable::try_acquire(TxnRef caller, ResourceId resource, LockMode mode) {
  const Attempt outcome = attempt(numbers_, resource.get(), caller, mode);
  if (is_success(outcome)) [[likely]] {
    return {};
  }
  return result_of(outcome, caller);
}

Result<void> LockTable::try_acquire(TxnRef caller, const Target& target, LockMode mode) {
  if (!has_good_name(target)) {
    return fail_name(target);
  }
  const Attempt outcome = with_table(
      target, [&](auto& table, const auto& key) { return attempt(table, key, caller, mode); });
  return result_of(outcome, caller);
}

Result<void> LockTable::acquire(TxnRef caller, ResourceId resource, LockMode mode) {
  const Attempt outcome = attempt(numbers_, resource.get(), caller, mode);
  if (is_success(outcome)) [[likely]] {
    return {};
  }
  return outcome == Attempt::blocked ? wait(numbers_, resource.get(), Wait{caller, mode, {}})
                                     : result_of(outcome, caller);
}

Result<void> LockTable::acquire(TxnRef caller, ResourceId resource, LockMode mode,
                                const WaitOptions& options) {
  return acquire(caller, Target(resource), mode, options);
}

Result<void> LockTable::acquire(TxnRef caller, const Target& target, LockMode mode,
                                const WaitOptions& options) {
  if (options.cancel.stop_requested()) {
    return fail(Errc::cancelled);
  }
  if (!has_good_name(target)) {
    return fail_name(target);
  }
  return with_table(target, [&](auto& table, const auto& key) -> Result<void> {
    const Attempt outcome = attempt(table, key, caller, mode);
    return outcome == Attempt::blocked ? wait(table, key, Wait{caller, mode, options})
                                       : result_of(outcome, caller);
  });
}

bool LockTable::may_close_a_cycle(Txn& txn) {
  // A cycle through this transaction needs a waiter on it: for one of its holds, or behind another
  // wait of it. Most waits have none, which saves the search.
  return txn.waits.size() > 1 || numbers_.may_have_waiters(txn) || names_.may_have_waiters(txn) ||
         keys_.may_have_waiters(txn) || bytes_.may_have_waiters(txn);
}

// The waiter may have been granted, cancelled or made a victim while its thread woke up. Under the
// stripe of the transaction its state is final, or it is still pending and is removed here.
Result<void> LockTable::finish_wait(Waiter& waiter, TxnRef caller, const WaitOptions& options) {
  Wakes wakes;
  const auto txn = enter_existing(caller);
  if (txn) {
    txn->drop_wait(waiter);
  }
  if (waiter.is_pending() && waiter.table->leave(waiter, WaitState::ended, wakes)) {
    return options.cancel.stop_requested() ? fail(Errc::cancelled) : fail(Errc::timed_out);
  }
  switch (waiter.state.load()) {
    case WaitState::granted: waiter.table->claim(*txn, waiter); return {};
    case WaitState::deadlock: return fail_deadlock(*waiter.verdict);
    default:
      return fail(Errc::cancelled,
                  "another thread cancelled the waits of transaction " + to_string(caller.id));
  }
}

// One step of a polled request: continues an earlier request for the same target, or makes a new
// attempt. A request in another mode replaces the earlier one at the end of the queue.
template <class Table, class Key>
LockTable::RequestStep LockTable::request_once(Table& table, const Key& key, TxnRef caller,
                                               LockMode mode) {
  Wakes wakes;
  const auto txn = enter(caller);
  if (txn->verdict != nullptr) {
    txn->notified = true;
    return {.answer = RequestResult(*txn->verdict)};
  }
  if (Waiter* const earlier = txn->find_request(table.find_wait(*txn, key)); earlier != nullptr) {
    const bool is_pending = earlier->is_pending();
    if (is_pending && earlier->wanted == mode) {
      return {.answer = RequestResult::waiting()};
    }
    // The earlier request was granted, or waits for another mode: it is claimed or withdrawn first.
    bool is_held = false;
    if (is_pending) {
      table.leave(*earlier, WaitState::ended, wakes);
    } else if (earlier->wanted == mode) {
      is_held = table.claim(*txn, *earlier);
    } else {
      table.undo(*txn, *earlier, wakes);
    }
    txn->drop_request(*earlier);
    if (is_held) {
      return {.answer = RequestResult::granted()};
    }
  }

  Attempt outcome = table.acquire(*txn, key, mode, nullptr);
  if (outcome == Attempt::blocked) {
    auto waiter = std::make_unique<Waiter>(caller.id, mode, table);
    waiter->since = std::chrono::steady_clock::now();
    set_target(*waiter, key);
    outcome = table.acquire(*txn, key, mode, waiter.get());
    if (outcome == Attempt::queued) {
      txn->waits.push_back(waiter.get());
      txn->requests.push_back(std::move(waiter));
      return {.answer = RequestResult::waiting(), .may_close_a_cycle = may_close_a_cycle(*txn)};
    }
  }
  if (outcome == Attempt::exhausted) {
    return {.answer = RequestResult(exhausted_error())};
  }
  ++txn->work;
  return {.answer = RequestResult::granted(), .may_close_a_cycle = !txn->waits.empty()};
}

// Not inlined, so that a request that is granted at once does not pay for its stack frame.
template <class Table, class Key>
[[gnu::noinline]] RequestResult LockTable::request_and_check(Table& table, const Key& key,
                                                             TxnRef caller, LockMode mode) {
  RequestStep requested = request_once(table, key, caller, mode);
  if (!requested.may_close_a_cycle || options_.detection == Detection::on_demand) {
    return std::move(requested.answer);
  }
  const Detector::Resolution resolution = detector_.check(caller.id, std::nullopt);
  if (requested.answer.is_granted()) {
    return std::move(requested.answer);
  }
  if (resolution.deadlock) {
    if (resolution.deadlock->victim == caller.id) {
      mark_notified(caller);
    }
    return RequestResult(*resolution.deadlock);
  }
  // A grant out of turn may have been that of this request, so ask once more.
  return resolution.admitted ? request_once(table, key, caller, mode).answer
                             : std::move(requested.answer);
}

RequestResult LockTable::request(TxnRef caller, ResourceId resource, LockMode mode) {
  {
    // Fast path: the transaction has no pending request and the lock is free.
    const auto txn = enter(caller);
    if (txn->verdict == nullptr && txn->waits.empty() &&
        is_success(numbers_.acquire(*txn, resource.get(), mode, nullptr))) [[likely]] {
      ++txn->work;
      return RequestResult::granted();
    }
  }
  return request_and_check(numbers_, resource.get(), caller, mode);
}

RequestResult LockTable::request(TxnRef caller, const Target& target, LockMode mode) {
  if (!has_good_name(target)) {
    return RequestResult(fail_name(target).error());
  }
  return with_table(target, [&](auto& table, const auto& key) {
    return request_and_check(table, key, caller, mode);
  });
}

void LockTable::mark_notified(TxnRef caller) {
  enter(caller)->notified = true;
}

/// Ends all waits of the transaction. Returns the number of locks that were granted but not claimed
/// yet, and are released here.
std::size_t LockTable::end_waits(Txn& txn, Wakes& wakes) {
  std::size_t locks = 0;
  while (!txn.waits.empty()) {
    // From the back: the list shrinks without moving its entries.
    Waiter& waiter = *txn.waits.back();
    txn.waits.pop_back();
    const bool was_pending = waiter.table->leave(waiter, WaitState::ended, wakes);
    if (!was_pending && waiter.state.load() == WaitState::granted) {
      // Granted, but its thread has not claimed it yet. The thread will find the wait ended.
      locks += waiter.table->undo(txn, waiter, wakes) ? 1 : 0;
      waiter.state.store(WaitState::ended);
    }
  }
  // Destroys the waiters that no thread owns. Those of threads live on their stacks.
  txn.requests.clear();
  return locks;
}

void LockTable::cancel_wait(TxnRef caller) {
  Wakes wakes;
  if (const auto txn = enter_existing(caller); txn) {
    static_cast<void>(end_waits(*txn, wakes));
  }
}

Result<void> LockTable::release(TxnRef caller, ResourceId resource) {
  Wakes wakes;
  const auto txn = enter_existing(caller);
  // Granted waiters are woken when `wakes` is destroyed, after the latches are released.
  if (txn && numbers_.release(*txn, resource.get(), wakes)) [[likely]] {
    return {};
  }
  return fail(Errc::not_held);
}

Result<void> LockTable::release(TxnRef caller, const Target& target) {
  const bool was_held = with_table(target, [&](auto& table, const auto& key) {
    Wakes wakes;
    const auto txn = enter_existing(caller);
    return txn && table.release(*txn, key, wakes);
  });
  return was_held ? Result<void>() : fail(Errc::not_held);
}

Result<void> LockTable::downgrade(TxnRef caller, const Target& target, LockMode mode) {
  return with_table(target, [&](auto& table, const auto& key) -> Result<void> {
    Wakes wakes;
    const auto txn = enter_existing(caller);
    return txn ? table.downgrade(*txn, key, mode, wakes) : fail(Errc::not_held);
  });
}

std::optional<LockMode> LockTable::mode_held(TxnId txn, const Target& target) {
  return with_table(target,
                    [&](auto& table, const auto& key) { return table.mode_held(txn, key); });
}

std::size_t LockTable::holder_count(const Target& target) {
  return with_table(target, [](auto& table, const auto& key) { return table.holder_count(key); });
}

/// Releases at most `at_most` locks. Bounded, so that a transaction with a million locks does not
/// keep its stripe latched for long.
std::size_t LockTable::release_some(Txn& txn, std::size_t at_most, Wakes& wakes) {
  // Fine to coarse: of a hierarchy, descendants before their ancestors.
  std::size_t count = 0;
  if (txn.list(PointKind::number).size() < txn.lock_count) {
    count += keys_.release_last(txn, at_most, wakes);
    count += bytes_.release_last(txn, at_most - count, wakes);
  }
  count += numbers_.release_last(txn, at_most - count, wakes);
  count += names_.release_last(txn, at_most - count, wakes);
  return count;
}

// Common case: all locks fit into one portion, and the stripe is latched once. A victim is cleared
// if it was notified; or if it had nothing to release, because then this call acknowledges it.
std::size_t LockTable::release_all(TxnRef caller) {
  Wakes wakes;
  const auto txn = enter_existing(caller);
  if (!txn) {
    return 0;
  }
  std::size_t count = txn->waits.empty() ? 0 : end_waits(*txn, wakes);
  count += release_some(*txn, released_at_once, wakes);
  if (txn->lock_count == 0) [[likely]] {
    if (txn->verdict != nullptr && (txn->notified || count == 0)) {
      txn->verdict.reset();
    }
    return count;
  }
  txn->ending = true;
  return finish_release(*txn, count);
}

std::size_t LockTable::finish_release(Txn& txn, std::size_t count) {
  // Yields the latch of the stripe between portions; `ending` keeps calls of this transaction out.
  while (txn.ending) {
    txns_.pause(txn);
    Wakes wakes;
    count += release_some(txn, released_at_once, wakes);
    txn.ending = txn.lock_count > 0;
  }
  if (txn.notified) {
    txn.verdict.reset();
  }
  return count;
}

std::size_t LockTable::lock_count(TxnRef caller) {
  const auto txn = enter_existing(caller);
  return txn ? txn->lock_count : 0;
}

std::uint64_t LockTable::age(TxnRef caller) {
  return enter(caller)->age;
}

std::optional<Deadlock> LockTable::verdict(TxnRef caller) {
  const auto txn = enter_existing(caller);
  return txn && txn->verdict != nullptr ? std::optional(*txn->verdict) : std::nullopt;
}

std::size_t LockTable::range_count(ResourceId space) {
  return keys_.range_count(space) + bytes_.range_count(space);
}

std::size_t LockTable::waiting_count() {
  std::size_t count = 0;
  txns_.visit([&](const Txn& txn) {
    const bool waits =
        std::ranges::any_of(txn.waits, [](const Waiter* waiter) { return waiter->is_pending(); });
    count += waits ? 1 : 0;
  });
  return count;
}

LockSnapshot LockTable::snapshot() {
  LockSnapshot snapshot;
  numbers_.snapshot(snapshot.locks);
  names_.snapshot(snapshot.locks);
  keys_.snapshot(snapshot.locks);
  bytes_.snapshot(snapshot.locks);
  std::ranges::sort(snapshot.locks, {}, &LockView::target);

  absl::flat_hash_map<std::uint64_t, std::chrono::steady_clock::time_point> begun;
  txns_.visit([&](const Txn& txn) { begun.emplace(txn.id.get(), txn.since); });
  const auto now = std::chrono::steady_clock::now();
  for (LockView& lock : snapshot.locks) {
    for (HolderView& holder : lock.holders) {
      const auto found = begun.find(holder.txn.get());
      if (found != begun.end()) {
        holder.transaction_for =
            std::chrono::duration_cast<std::chrono::milliseconds>(now - found->second);
      }
    }
  }
  return snapshot;
}

}  // namespace tenure::detail
