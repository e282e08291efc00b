#include <tenure/lock_manager/lock_manager.hpp>

#include "lock_manager/lock_table.hpp"

namespace tenure {

LockManager::LockManager() : LockManager(LockManagerOptions{}) {}

LockManager::LockManager(const LockManagerOptions& options)
    : table_(std::make_shared<detail::LockTable>(options)) {}

LockManager LockManager::with_shards(std::size_t shards) {
  return LockManager({.shards = shards});
}

// The handle shares the ownership of the table, so it may outlive the manager.
Transaction LockManager::begin(const TransactionOptions& options) const {
  return Transaction(table_, table_->pin(options));
}

Result<void> LockManager::try_acquire(TxnId txn, const Target& target, LockMode mode) const {
  return table_->try_acquire({.id = txn}, target, mode);
}

Result<void> LockManager::try_acquire(TxnId txn, ResourceId resource, LockMode mode) const {
  return table_->try_acquire({.id = txn}, resource, mode);
}

Result<void> LockManager::acquire(TxnId txn, ResourceId resource, LockMode mode,
                                  const WaitOptions& wait) const {
  return table_->acquire({.id = txn}, resource, mode, wait);
}

Result<void> LockManager::acquire(TxnId txn, ResourceId resource, LockMode mode) const {
  return table_->acquire({.id = txn}, resource, mode);
}

Result<void> LockManager::release(TxnId txn, ResourceId resource) const {
  return table_->release({.id = txn}, resource);
}

Result<void> LockManager::try_acquire_range(TxnId txn, ResourceId space, const KeyRange& range,
                                            LockMode mode) const {
  return try_acquire(txn, KeysOf{.space = space, .range = range}, mode);
}

Result<void> LockManager::acquire(TxnId txn, const Target& target, LockMode mode,
                                  const WaitOptions& wait) const {
  return table_->acquire({.id = txn}, target, mode, wait);
}

RequestResult LockManager::request(TxnId txn, const Target& target, LockMode mode) const {
  return table_->request({.id = txn}, target, mode);
}

RequestResult LockManager::request(TxnId txn, ResourceId resource, LockMode mode) const {
  return table_->request({.id = txn}, resource, mode);
}

void LockManager::cancel_wait(TxnId txn) const {
  table_->cancel_wait({.id = txn});
}

Result<void> LockManager::release(TxnId txn, const Target& target) const {
  return table_->release({.id = txn}, target);
}

Result<void> LockManager::release_range(TxnId txn, ResourceId space, const KeyRange& range) const {
  return release(txn, KeysOf{.space = space, .range = range});
}

std::size_t LockManager::release_all(TxnId txn) const {
  return table_->release_all({.id = txn});
}

Result<void> LockManager::downgrade(TxnId txn, const Target& target, LockMode mode) const {
  return table_->downgrade({.id = txn}, target, mode);
}

std::optional<Deadlock> LockManager::find_deadlock() const {
  return table_->find_deadlock();
}

std::vector<DeadlockReport> LockManager::recent_deadlocks() const {
  return table_->recent_deadlocks();
}

std::size_t LockManager::holder_count(const Target& target) const {
  return table_->holder_count(target);
}

std::optional<LockMode> LockManager::mode_held(TxnId txn, const Target& target) const {
  return table_->mode_held(txn, target);
}

std::size_t LockManager::range_count(ResourceId space) const {
  return table_->range_count(space);
}

std::size_t LockManager::waiting_count() const {
  return table_->waiting_count();
}

std::size_t LockManager::shards() const noexcept {
  return table_->shards();
}

LockSnapshot LockManager::snapshot() const {
  return table_->snapshot();
}

}  // namespace tenure
