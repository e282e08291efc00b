#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

namespace tenure::bench {

/// Minimal hand-written lock table: one std::mutex and a flat hash map of resource ->
/// holder. Exclusive only: no modes, no queue, no deadlock search, no list of what a transaction
/// holds.
template <class Key>
class MutexMap {
 public:
  static constexpr std::string_view name = "floor_mutex_map";

  explicit MutexMap(std::size_t /*locks_at_once*/ = 0) {}

  /// One transaction number.
  class Session {
   public:
    Session(MutexMap& map, TxnId txn) : map_(&map), txn_(txn) {}

    template <class AnyKey>
    [[nodiscard]] bool acquire(const AnyKey& key, LockMode /*mode*/) const {
      const std::lock_guard lock(map_->mutex_);
      return map_->holders_.try_emplace(as_key(key), txn_).second;
    }
    template <class AnyKey>
    void release(const AnyKey& key) const {
      const std::lock_guard lock(map_->mutex_);
      const auto held = map_->holders_.find(as_key(key));
      if (held != map_->holders_.end() && held->second == txn_) {
        map_->holders_.erase(held);
      }
    }

   private:
    /// Abseil's own type of view: Debian builds it apart from the standard one.
    [[nodiscard]] static absl::string_view as_key(std::string_view text) {
      return {text.data(), text.size()};
    }
    [[nodiscard]] static ResourceId as_key(ResourceId resource) { return resource; }

    MutexMap* map_;
    TxnId txn_;
  };

 private:
  std::mutex mutex_;
  absl::flat_hash_map<Key, TxnId> holders_;  ///< Guarded by mutex_.
};

/// A std::shared_mutex for each resource, in a map that never changes after its making: what
/// shared access to a hot resource costs with the standard library alone.
class SharedMutexMap {
 public:
  static constexpr std::string_view name = "floor_shared_mutex_map";

  explicit SharedMutexMap(std::size_t /*locks_at_once*/ = 0) {
    for (std::uint64_t resource = 0; resource < resources; ++resource) {
      mutexes_.emplace(resource, std::make_unique<std::shared_mutex>());
    }
  }

  /// One thread.
  class Session {
   public:
    Session(SharedMutexMap& map, TxnId /*txn*/) : map_(&map) {}

    [[nodiscard]] bool acquire(ResourceId resource, LockMode /*mode*/) const {
      return mutex_of(resource).try_lock_shared();
    }
    void release(ResourceId resource) const { mutex_of(resource).unlock_shared(); }

   private:
    [[nodiscard]] std::shared_mutex& mutex_of(ResourceId resource) const {
      return *map_->mutexes_.find(resource.get())->second;
    }

    SharedMutexMap* map_;
  };

 private:
  static constexpr std::uint64_t resources = 1'024;

  absl::flat_hash_map<std::uint64_t, std::unique_ptr<std::shared_mutex>> mutexes_;
};

}  // namespace tenure::bench
