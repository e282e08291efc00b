#include <string>
#include <utility>
#include <vector>

#include <tenure/lock_manager/transaction.hpp>

#include "lock_manager/lock_table.hpp"

namespace tenure {

namespace {

/// Names of the nodes of a path, root first.
Result<std::vector<std::string>> nodes_of(std::span<const std::string_view> path) {
  if (path.empty() || path.size() > path_depth_max) {
    return fail(Errc::invalid_argument, "a path has 1 to " + std::to_string(path_depth_max) +
                                            " steps; this one has " + std::to_string(path.size()));
  }
  std::vector<std::string> nodes;
  nodes.reserve(path.size());
  std::string name;
  for (const std::string_view step : path) {
    if (step.empty() || step.contains('/')) {
      return fail(Errc::invalid_argument, "step " + std::to_string(nodes.size() + 1) +
                                              " of the path is empty or contains '/'");
    }
    // Each node has the full path as its name, so equal steps of different paths differ.
    name += nodes.empty() ? "" : "/";
    name += step;
    nodes.push_back(name);
  }
  return nodes;
}

/// Locks the nodes root first by lock(name, mode). If one fails, releases those it has locked.
template <class Lock>
Result<void> lock_nodes(const Transaction& txn, std::span<const std::string_view> path,
                        LockMode mode, const Lock& lock) {
  const auto nodes = nodes_of(path);
  if (!nodes) {
    return std::unexpected(nodes.error());
  }
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    const bool is_leaf = i + 1 == nodes->size();
    Result<void> locked = lock((*nodes)[i], is_leaf ? mode : ancestor_mode(mode));
    if (locked) {
      continue;
    }
    // Leaf to root, the reverse of the acquisition: no ancestor is free while a descendant is held.
    while (i-- > 0) {
      static_cast<void>(txn.unlock((*nodes)[i]));
    }
    return locked;
  }
  return {};
}

}  // namespace

Transaction::Transaction(std::shared_ptr<detail::LockTable> table, detail::Txn& txn) noexcept
    : table_(std::move(table)), txn_(&txn), id_(txn.id) {}

Transaction::Transaction(Transaction&& other) noexcept
    : table_(std::move(other.table_)), txn_(std::exchange(other.txn_, nullptr)), id_(other.id_) {}

Transaction& Transaction::operator=(Transaction&& other) noexcept {
  if (this != &other) {
    end();
    table_ = std::move(other.table_);
    txn_ = std::exchange(other.txn_, nullptr);
    id_ = other.id_;
  }
  return *this;
}

Transaction::~Transaction() {
  end();
}

// Releases all locks, unless the handle was moved from.
void Transaction::end() noexcept {
  if (table_ != nullptr) {
    table_->unpin(*txn_);
    table_.reset();
  }
}

std::uint64_t Transaction::age() const {
  return table_->age({.id = id_, .pinned = txn_});
}

Result<void> Transaction::lock(const Target& target, LockMode mode, const WaitOptions& wait) const {
  return table_->acquire({.id = id_, .pinned = txn_}, target, mode, wait);
}

Result<void> Transaction::try_lock(const Target& target, LockMode mode) const {
  return table_->try_acquire({.id = id_, .pinned = txn_}, target, mode);
}

Result<void> Transaction::lock(ResourceId resource, LockMode mode, const WaitOptions& wait) const {
  return table_->acquire({.id = id_, .pinned = txn_}, resource, mode, wait);
}

Result<void> Transaction::lock(ResourceId resource, LockMode mode) const {
  return table_->acquire({.id = id_, .pinned = txn_}, resource, mode);
}

Result<void> Transaction::try_lock(ResourceId resource, LockMode mode) const {
  return table_->try_acquire({.id = id_, .pinned = txn_}, resource, mode);
}

Result<void> Transaction::unlock(ResourceId resource) const {
  return table_->release({.id = id_, .pinned = txn_}, resource);
}

Result<ScopedLock> Transaction::lock_scoped(const Target& target, LockMode mode,
                                            const WaitOptions& wait) const {
  if (Result<void> locked = lock(target, mode, wait); !locked) {
    return std::unexpected(std::move(locked).error());
  }
  return ScopedLock(*this, target);
}

Result<void> Transaction::lock_path(std::span<const std::string_view> path, LockMode mode,
                                    const WaitOptions& wait) const {
  return lock_nodes(*this, path, mode, [&](const std::string& name, LockMode wanted) {
    return lock(name, wanted, wait);
  });
}

Result<void> Transaction::lock_path(std::initializer_list<std::string_view> path, LockMode mode,
                                    const WaitOptions& wait) const {
  return lock_path(std::span(path.begin(), path.size()), mode, wait);
}

Result<void> Transaction::try_lock_path(std::span<const std::string_view> path,
                                        LockMode mode) const {
  return lock_nodes(*this, path, mode, [&](const std::string& name, LockMode wanted) {
    return try_lock(name, wanted);
  });
}

Result<void> Transaction::unlock_path(std::span<const std::string_view> path) const {
  const auto nodes = nodes_of(path);
  if (!nodes) {
    return std::unexpected(nodes.error());
  }
  for (auto node = nodes->rbegin(); node != nodes->rend(); ++node) {
    // Leaf first: if it is not held, its ancestors belong to other locks of the transaction and
    // stay.
    if (Result<void> unlocked = unlock(*node); !unlocked) {
      return unlocked;
    }
  }
  return {};
}

Result<void> Transaction::unlock(const Target& target) const {
  return table_->release({.id = id_, .pinned = txn_}, target);
}

Result<void> Transaction::downgrade(const Target& target, LockMode mode) const {
  return table_->downgrade({.id = id_, .pinned = txn_}, target, mode);
}

std::optional<LockMode> Transaction::mode_held(const Target& target) const {
  return table_->mode_held(id_, target);
}

std::size_t Transaction::lock_count() const {
  return table_->lock_count({.id = id_, .pinned = txn_});
}

std::size_t Transaction::unlock_all() const {
  return table_->release_all({.id = id_, .pinned = txn_});
}

std::optional<Deadlock> Transaction::deadlock() const {
  return table_->verdict({.id = id_, .pinned = txn_});
}

// A name is copied: the text of the caller may not live until the release.
ScopedLock::ScopedLock(const Transaction& txn, const Target& target) : txn_(&txn) {
  if (const auto* const name = std::get_if<std::string_view>(&target)) {
    target_.emplace<std::string>(*name);
  } else if (const auto* const resource = std::get_if<ResourceId>(&target)) {
    target_ = *resource;
  } else if (const auto* const keys = std::get_if<KeysOf>(&target)) {
    target_ = *keys;
  } else {
    target_ = std::get<BytesOf>(target);
  }
}

ScopedLock::ScopedLock(ScopedLock&& other) noexcept
    : txn_(std::exchange(other.txn_, nullptr)), target_(std::move(other.target_)) {}

ScopedLock& ScopedLock::operator=(ScopedLock&& other) noexcept {
  if (this != &other) {
    // Releases the own lock before it takes over the other one.
    static_cast<void>(unlock());
    txn_ = std::exchange(other.txn_, nullptr);
    target_ = std::move(other.target_);
  }
  return *this;
}

ScopedLock::~ScopedLock() {
  static_cast<void>(unlock());
}

Result<void> ScopedLock::unlock() {
  const Transaction* const txn = std::exchange(txn_, nullptr);
  if (txn == nullptr) {
    return fail(Errc::not_held);
  }
  return txn->unlock(std::visit([](const auto& kind) { return Target(kind); }, target_));
}

}  // namespace tenure
