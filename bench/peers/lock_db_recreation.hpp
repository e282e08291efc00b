#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure::bench {

/// Stands in for lock-db 1.0, which is a Rust crate and does not link here: a plain
/// C++ re-creation of the design its manual describes. A power of two of shards (4 per CPU, 16 to
/// 1,024), each one mutex over a hash map of resource -> holders and a reverse index of
/// transaction -> resources; ranges of a space in a list that is searched from front to back; and
/// request(), which takes the one mutex of the wait registry and rebuilds the wait-for graph from
/// all waiters whenever it has to wait. It shares LockMode and KeyRange with Tenure, no more.
class LockDbRecreation {
 public:
  static constexpr std::string_view name = "lock_db_recreation";

  enum class Outcome : std::uint8_t { granted, waiting, deadlock };

  explicit LockDbRecreation(std::size_t /*locks_at_once*/ = 0)
      : shard_count_(std::clamp<std::size_t>(
            std::bit_ceil(std::size_t{4} * std::max(1U, std::thread::hardware_concurrency())), 16,
            1024)),
        shards_(std::make_unique<Shard[]>(shard_count_)) {}

  [[nodiscard]] bool try_acquire(TxnId txn, ResourceId resource, LockMode mode) {
    Shard& shard = shard_of(resource);
    const std::lock_guard lock(shard.mutex);
    std::vector<Holder>& holders = shard.holders[resource];
    const auto own = std::ranges::find(holders, txn, &Holder::txn);
    const LockMode wanted = own == holders.end() ? mode : join(own->mode, mode);
    const bool fits = std::ranges::all_of(holders, [&](const Holder& holder) {
      return holder.txn == txn || compatible_with(holder.mode, wanted);
    });
    if (!fits) {
      return false;
    }
    if (own != holders.end()) {
      own->mode = wanted;
      return true;
    }
    holders.push_back({.txn = txn, .mode = mode});
    shard.resources_of[txn].insert(resource);
    return true;
  }

  bool release(TxnId txn, ResourceId resource) {
    Shard& shard = shard_of(resource);
    const std::lock_guard lock(shard.mutex);
    if (!drop(shard, txn, resource)) {
      return false;
    }
    const auto index = shard.resources_of.find(txn);
    index->second.erase(resource);
    if (index->second.empty()) {
      shard.resources_of.erase(index);
    }
    return true;
  }

  std::size_t release_all(TxnId txn) {
    std::size_t released = 0;
    for (std::size_t at = 0; at < shard_count_; ++at) {
      released += release_all_in(shards_[at], txn);
    }
    cancel_wait(txn);
    return released;
  }

  [[nodiscard]] bool try_acquire_range(TxnId txn, ResourceId space, const KeyRange& range,
                                       LockMode mode) {
    Shard& shard = shard_of(space);
    const std::lock_guard lock(shard.mutex);
    std::vector<RangeHolder>& live = shard.ranges[space];
    const bool fits = std::ranges::none_of(live, [&](const RangeHolder& held) {
      return held.range.overlaps(range) && held.txn != txn && !compatible_with(held.mode, mode);
    });
    if (!fits) {
      return false;
    }
    live.push_back({.txn = txn, .range = range, .mode = mode});
    shard.spaces_of[txn].insert(space);
    return true;
  }

  /// Searches the newest range first. release_all() cleans the reverse index of spaces, which it
  /// visits anyway.
  bool release_range(TxnId txn, ResourceId space, const KeyRange& range) {
    Shard& shard = shard_of(space);
    const std::lock_guard lock(shard.mutex);
    std::vector<RangeHolder>& live = shard.ranges[space];
    const auto found = std::find_if(live.rbegin(), live.rend(), [&](const RangeHolder& held) {
      return held.txn == txn && held.range == range;
    });
    if (found == live.rend()) {
      return false;
    }
    *found = live.back();
    live.pop_back();
    return true;
  }

  [[nodiscard]] Outcome request(TxnId txn, ResourceId resource, LockMode mode) {
    const std::lock_guard lock(registry_mutex_);
    if (try_acquire(txn, resource, mode)) {
      waits_.erase(txn);
      return Outcome::granted;
    }
    waits_.insert_or_assign(txn, Wait{.resource = resource, .mode = mode});
    return closes_cycle(txn) ? Outcome::deadlock : Outcome::waiting;
  }

  void cancel_wait(TxnId txn) {
    const std::lock_guard lock(registry_mutex_);
    waits_.erase(txn);
  }

  /// A wait without the search for a cycle, so that preparing 10,000 of them takes no minutes.
  void prepare_wait(TxnId txn, ResourceId resource, LockMode mode) {
    const std::lock_guard lock(registry_mutex_);
    waits_.insert_or_assign(txn, Wait{.resource = resource, .mode = mode});
  }

  /// A range that is known to be free, so that preparing 100,000 of them takes no seconds.
  void prepare_range(TxnId txn, ResourceId space, const KeyRange& range, LockMode mode) {
    Shard& shard = shard_of(space);
    const std::lock_guard lock(shard.mutex);
    shard.ranges[space].push_back({.txn = txn, .range = range, .mode = mode});
    shard.spaces_of[txn].insert(space);
  }

  /// One transaction number.
  class Session {
   public:
    Session(LockDbRecreation& table, TxnId txn) : table_(&table), txn_(txn) {}

    [[nodiscard]] bool acquire(ResourceId resource, LockMode mode) const {
      return table_->try_acquire(txn_, resource, mode);
    }
    void release(ResourceId resource) const { table_->release(txn_, resource); }
    void release_upgraded(ResourceId resource) const { release(resource); }
    void release_all() const { table_->release_all(txn_); }

    [[nodiscard]] bool acquire_range(const KeyRange& range, LockMode mode) const {
      return table_->try_acquire_range(txn_, ResourceId{1}, range, mode);
    }
    void release_range(const KeyRange& range) const {
      table_->release_range(txn_, ResourceId{1}, range);
    }

    void prepare_range(const KeyRange& range, LockMode mode) const {
      table_->prepare_range(txn_, ResourceId{1}, range, mode);
    }

   protected:
    LockDbRecreation* table_;
    TxnId txn_;
  };

 private:
  struct Holder {
    TxnId txn;
    LockMode mode;
  };
  struct RangeHolder {
    TxnId txn;
    KeyRange range;
    LockMode mode;
  };
  struct Wait {
    ResourceId resource;
    LockMode mode;
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<ResourceId, std::vector<Holder>> holders;
    std::unordered_map<ResourceId, std::vector<RangeHolder>> ranges;
    std::unordered_map<TxnId, std::unordered_set<ResourceId>> resources_of;
    std::unordered_map<TxnId, std::unordered_set<ResourceId>> spaces_of;
  };
  using Graph = std::unordered_map<TxnId, std::vector<TxnId>>;

  [[nodiscard]] Shard& shard_of(ResourceId resource) const {
    const auto shift = static_cast<unsigned>(64 - std::countr_zero(shard_count_));
    return shards_[(resource.get() * 0x9E37'79B9'7F4A'7C15U) >> shift];
  }

  /// REQUIRES: the mutex of `shard` is held.
  static bool drop(Shard& shard, TxnId txn, ResourceId resource) {
    const auto entry = shard.holders.find(resource);
    if (entry == shard.holders.end()) {
      return false;
    }
    std::vector<Holder>& holders = entry->second;
    const auto own = std::ranges::find(holders, txn, &Holder::txn);
    if (own == holders.end()) {
      return false;
    }
    *own = holders.back();
    holders.pop_back();
    if (holders.empty()) {
      shard.holders.erase(entry);
    }
    return true;
  }

  static std::size_t release_all_in(Shard& shard, TxnId txn) {
    const std::lock_guard lock(shard.mutex);
    std::size_t released = 0;
    if (const auto index = shard.resources_of.find(txn); index != shard.resources_of.end()) {
      for (const ResourceId resource : index->second) {
        released += drop(shard, txn, resource) ? 1U : 0U;
      }
      shard.resources_of.erase(index);
    }
    if (const auto index = shard.spaces_of.find(txn); index != shard.spaces_of.end()) {
      for (const ResourceId space : index->second) {
        released += std::erase_if(shard.ranges[space],
                                  [&](const RangeHolder& held) { return held.txn == txn; });
      }
      shard.spaces_of.erase(index);
    }
    return released;
  }

  /// REQUIRES: registry_mutex_ is held.
  [[nodiscard]] Graph build_graph() const {
    Graph graph;
    graph.reserve(waits_.size());
    for (const auto& [waiter, wait] : waits_) {
      Shard& shard = shard_of(wait.resource);
      const std::lock_guard lock(shard.mutex);
      const auto entry = shard.holders.find(wait.resource);
      if (entry == shard.holders.end()) {
        continue;
      }
      for (const Holder& holder : entry->second) {
        if (holder.txn != waiter && !compatible_with(holder.mode, wait.mode)) {
          graph[waiter].push_back(holder.txn);
        }
      }
    }
    return graph;
  }

  /// REQUIRES: registry_mutex_ is held.
  [[nodiscard]] bool closes_cycle(TxnId start) const {
    const Graph graph = build_graph();
    std::unordered_set<TxnId> seen{start};
    std::vector<TxnId> to_visit{start};
    while (!to_visit.empty()) {
      const auto edges = graph.find(to_visit.back());
      to_visit.pop_back();
      if (edges == graph.end()) {
        continue;
      }
      for (const TxnId next : edges->second) {
        if (next == start) {
          return true;
        }
        if (seen.insert(next).second) {
          to_visit.push_back(next);
        }
      }
    }
    return false;
  }

  // Order: registry_mutex_ before the mutex of a shard.
  std::mutex registry_mutex_;
  std::unordered_map<TxnId, Wait> waits_;  ///< Guarded by registry_mutex_.
  std::size_t shard_count_;
  std::unique_ptr<Shard[]> shards_;  ///< Each guarded by its own mutex.
};

/// The same table, asked through request().
struct LockDbRecreationRequest : LockDbRecreation {
  static constexpr std::string_view name = "lock_db_recreation_request";

  using LockDbRecreation::LockDbRecreation;

  /// One transaction number.
  class Session : public LockDbRecreation::Session {
   public:
    using LockDbRecreation::Session::Session;

    [[nodiscard]] bool acquire(ResourceId resource, LockMode mode) const {
      if (table_->request(txn_, resource, mode) == Outcome::granted) {
        return true;
      }
      table_->cancel_wait(txn_);
      return false;
    }
  };
};

}  // namespace tenure::bench
