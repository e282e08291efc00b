#pragma once

#include <cstdint>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure::detail {

struct Waiter;

/// Held or awaited acquisition of a range; base for all kinds of keys. The latch of its shard
/// guards the members, except `slot`, which the stripe of its transaction guards.
struct RangeEntry {
  RangeEntry(TxnId owner, ResourceId where, LockMode requested) noexcept
      : txn(owner), space(where), mode(requested) {}
  RangeEntry(const RangeEntry&) = delete;
  RangeEntry& operator=(const RangeEntry&) = delete;
  virtual ~RangeEntry() = default;

  TxnId txn;
  ResourceId space;
  LockMode mode;
  bool upgrade = false;  ///< Lies inside a range that its transaction holds: precedes other waits.
  Waiter* waiter = nullptr;  ///< Waiter; null once it is held.
  std::uint64_t order = 0;   ///< Order of arrival in its space.
  std::uint32_t slot = 0;    ///< Index in the list of the transaction.

  [[nodiscard]] bool is_held() const noexcept { return waiter == nullptr; }
};

}  // namespace tenure::detail
