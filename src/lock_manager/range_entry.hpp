#pragma once

#include <cstdint>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure::detail {

struct Waiter;

/// One acquisition of keys of a space, held or waited for. What all kinds of keys have in common.
/// Guarded by the latch of its space, except `slot`, which its transaction's stripe guards.
struct RangeEntry {
  RangeEntry(TxnId owner, ResourceId where, LockMode requested) noexcept
      : txn(owner), space(where), mode(requested) {}
  RangeEntry(const RangeEntry&) = delete;
  RangeEntry& operator=(const RangeEntry&) = delete;
  virtual ~RangeEntry() = default;

  TxnId txn;
  ResourceId space;
  LockMode mode;
  bool upgrade = false;      ///< Lies inside a range its transaction holds: goes first.
  Waiter* waiter = nullptr;  ///< Who waits for it; none once it is held.
  std::uint64_t order = 0;   ///< Arrival in its space.
  std::uint32_t slot = 0;    ///< Its place in the transaction's list.

  [[nodiscard]] bool is_held() const noexcept { return waiter == nullptr; }
};

}  // namespace tenure::detail
