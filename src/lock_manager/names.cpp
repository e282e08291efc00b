#include "lock_manager/names.hpp"

#include <cassert>
#include <limits>
#include <utility>

#include <absl/hash/hash.h>

namespace tenure::detail {

std::uint64_t NameTable::intern(std::string_view name) {
  const std::size_t index = shard_of(name);
  Shard& shard = shards_[index];
  const sys::LatchGuard guard(shard.latch);
  if (const auto known = shard.by_text.find(name); known != shard.by_text.end()) {
    ++known->second->references;
    return known->second->id;
  }
  const std::uint64_t id = (++shard.created << shard_bits) | index;
  // On the heap, because the key of by_text is a view of this text and must not move.
  auto added = std::make_unique<Name>(std::string(name), id, std::size_t{1});
  shard.by_id.emplace(id, added.get());
  const std::string_view key = added->text;
  shard.by_text.emplace(key, std::move(added));
  return id;
}

std::optional<std::uint64_t> NameTable::find(std::string_view name) const {
  const Shard& shard = shards_[shard_of(name)];
  const sys::LatchGuard guard(shard.latch);
  const auto known = shard.by_text.find(name);
  return known == shard.by_text.end() ? std::nullopt : std::optional(known->second->id);
}

void NameTable::add_reference(std::uint64_t id) {
  Shard& shard = shards_[shard_of(id)];
  const sys::LatchGuard guard(shard.latch);
  const auto known = shard.by_id.find(id);
  assert(known != shard.by_id.end());
  ++known->second->references;
}

void NameTable::drop_reference(std::uint64_t id) {
  Shard& shard = shards_[shard_of(id)];
  const sys::LatchGuard guard(shard.latch);
  const auto known = shard.by_id.find(id);
  assert(known != shard.by_id.end());
  Name& name = *known->second;
  assert(name.references > 0);
  if (--name.references > 0) {
    return;
  }
  shard.by_id.erase(known);
  // By iterator, not by key: the key is part of what is erased.
  shard.by_text.erase(shard.by_text.find(name.text));
}

std::string NameTable::text(std::uint64_t id) const {
  const Shard& shard = shards_[shard_of(id)];
  const sys::LatchGuard guard(shard.latch);
  const auto known = shard.by_id.find(id);
  return known == shard.by_id.end() ? std::string() : known->second->text;
}

std::size_t NameTable::size() const {
  std::size_t names = 0;
  for (const Shard& shard : shards_) {
    const sys::LatchGuard guard(shard.latch);
    names += shard.by_id.size();
  }
  return names;
}

/// Uses the top bits of the hash, because the map of the shard uses the others.
std::size_t NameTable::shard_of(std::string_view name) noexcept {
  constexpr int hash_bits = std::numeric_limits<std::size_t>::digits;
  return absl::Hash<std::string_view>()(name) >> (hash_bits - shard_bits);
}

std::size_t NameTable::shard_of(std::uint64_t id) noexcept {
  return id & ((std::uint64_t{1} << shard_bits) - 1);
}

}  // namespace tenure::detail
