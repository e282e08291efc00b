#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure::detail {

/// Slot of a hold that is not in the list of its transaction yet.
inline constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();

/// Maximum number of acquisitions of one lock by one transaction.
inline constexpr std::uint16_t count_max = std::numeric_limits<std::uint16_t>::max();

/// Hold of one transaction on a lock.
struct Holder {
  TxnId txn;
  std::uint32_t slot;   ///< Index in the list of the transaction, or no_slot.
  std::uint16_t count;  ///< Number of acquisitions that were not released.
  LockMode mode;
};

/// Holders of one lock, found by transaction: linear search among a few, an index above that, such
/// as for the readers of a popular row. Not thread safe: the latch of the shard guards it.
class Holders {
 public:
  /// Hold of this transaction; null if it has none. Valid until the next add() or remove().
  [[nodiscard]] Holder* find(TxnId txn) noexcept {
    if (index_ != nullptr) {
      const auto found = index_->find(txn.get());
      return found == index_->end() ? nullptr : &all_[found->second];
    }
    for (Holder& holder : all_) {
      if (holder.txn == txn) {
        return &holder;
      }
    }
    return nullptr;
  }

  /// Adds a holder. REQUIRES: the transaction is no holder yet.
  Holder& add(const Holder& holder) {
    all_.push_back(holder);
    if (index_ == nullptr && all_.size() > searched_max) {
      index_ = std::make_unique<Index>();
      for (std::size_t i = 0; i < all_.size(); ++i) {
        index_->emplace(all_[i].txn.get(), i);
      }
    } else if (index_ != nullptr) {
      index_->emplace(holder.txn.get(), all_.size() - 1);
    }
    return all_.back();
  }

  /// Removes a holder. The last one moves into its place, so pointers to holders become invalid.
  void remove(const Holder& holder) {
    const auto at = static_cast<std::size_t>(&holder - all_.data());
    if (index_ != nullptr) {
      index_->erase(holder.txn.get());
      // The last holder moves to `at`.
      if (at + 1 != all_.size()) {
        (*index_)[all_.back().txn.get()] = at;
      }
    }
    all_[at] = all_.back();
    all_.pop_back();
    if (all_.empty()) {
      index_.reset();
    }
  }

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  [[nodiscard]] auto begin() const noexcept { return all_.begin(); }
  [[nodiscard]] auto end() const noexcept { return all_.end(); }

 private:
  /// Number of holders up to which a linear search replaces the index.
  static constexpr std::size_t searched_max = 16;
  using Index = absl::flat_hash_map<std::uint64_t, std::size_t>;

  /// Holders in no particular order.
  absl::InlinedVector<Holder, 2> all_;
  /// INVARIANT: if there is an index, it has the position of every holder.
  std::unique_ptr<Index> index_;
};

}  // namespace tenure::detail
