#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "lock_manager/lock_table.hpp"

namespace tenure::detail {

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
