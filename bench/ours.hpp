#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <tenure/tenure.hpp>

namespace tenure::bench {

/// Which of the calls that take a lock is measured.
enum class Verb : std::uint8_t {
  try_lock,  ///< Transaction::try_lock, LockManager::try_acquire
  lock,      ///< Transaction::lock, LockManager::acquire: would park the thread
  request,   ///< LockManager::request: would leave the request in the queue
};

/// Tenure, driven by Transaction handles.
template <Verb verb>
struct OursByHandle {
  static constexpr std::string_view name = verb == Verb::try_lock ? "ours_handle" : "ours_lock";

  explicit OursByHandle(std::size_t /*locks_at_once*/) {}

  LockManager locks;

  /// One transaction.
  class Session {
   public:
    Session(OursByHandle& ours, TxnId txn) : txn_(ours.locks.begin({.id = txn})) {}

    [[nodiscard]] bool acquire(const auto& target, LockMode mode) const {
      if constexpr (verb == Verb::try_lock) {
        return txn_.try_lock(target, mode).has_value();
      } else {
        return txn_.lock(target, mode).has_value();
      }
    }
    [[nodiscard]] bool acquire_path(std::span<const std::string_view> path, LockMode mode) const {
      return txn_.lock_path(path, mode).has_value();
    }
    void release(const auto& target) const { (void)txn_.unlock(target); }
    void release_upgraded(const auto& target) const {
      release(target);
      release(target);
    }
    void release_all() const { txn_.unlock_all(); }

    [[nodiscard]] bool acquire_range(const KeyRange& range, LockMode mode) const {
      return acquire(KeysOf{.space = space, .range = range}, mode);
    }
    void release_range(const KeyRange& range) const {
      release(KeysOf{.space = space, .range = range});
    }

   private:
    static constexpr ResourceId space{1};

    Transaction txn_;
  };
};

/// Tenure, driven by the caller's own transaction numbers.
template <Verb verb>
struct OursById {
  static constexpr std::string_view name = std::array<std::string_view, 3>{
      "ours_id", "ours_acquire", "ours_request"}[static_cast<std::size_t>(verb)];

  explicit OursById(std::size_t /*locks_at_once*/) {}

  LockManager locks;

  /// One transaction number.
  class Session {
   public:
    Session(OursById& ours, TxnId txn) : locks_(&ours.locks), txn_(txn) {}

    [[nodiscard]] bool acquire(const auto& target, LockMode mode) const {
      if constexpr (verb == Verb::try_lock) {
        return locks_->try_acquire(txn_, target, mode).has_value();
      } else if constexpr (verb == Verb::lock) {
        return locks_->acquire(txn_, target, mode).has_value();
      } else {
        return request(target, mode);
      }
    }
    void release(const auto& target) const { (void)locks_->release(txn_, target); }
    void release_upgraded(const auto& target) const {
      release(target);
      release(target);
    }
    void release_all() const { locks_->release_all(txn_); }

    [[nodiscard]] bool acquire_range(const KeyRange& range, LockMode mode) const {
      return locks_->try_acquire_range(txn_, ResourceId{1}, range, mode).has_value();
    }
    void release_range(const KeyRange& range) const {
      (void)locks_->release_range(txn_, ResourceId{1}, range);
    }

   private:
    [[nodiscard]] bool request(const auto& target, LockMode mode) const {
      const RequestResult outcome = locks_->request(txn_, target, mode);
      if (outcome.is_granted()) {
        return true;
      }
      locks_->cancel_wait(txn_);
      return false;
    }

    const LockManager* locks_;
    TxnId txn_;
  };
};

}  // namespace tenure::bench
