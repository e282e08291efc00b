#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <absl/container/inlined_vector.h>

#include <tenure/key_range.hpp>
#include <tenure/lock_mode.hpp>

#include "core/box.hpp"
#include "core/shared_string.hpp"

namespace tenure::core {

/// A lock and a space of keys are different resources, even with the same name.
enum class ResourceKind : std::uint8_t { name, space };

/// Resource that refers to a name it does not own, for lookups without a copy.
struct ResourceView {
  std::string_view name{};
  ResourceKind kind = ResourceKind::name;

  friend auto operator<=>(const ResourceView&, const ResourceView&) = default;
};

/// Lockable resource: a lock by name, or a space of keys. Has holders and one wait queue.
struct Resource {
  SharedString name{};
  ResourceKind kind = ResourceKind::name;

  // NOLINTNEXTLINE(google-explicit-constructor): as a string is a string_view
  operator ResourceView() const noexcept { return {.name = name.view(), .kind = kind}; }
  /// By name first. Effects on several resources happen in this order, so that they do not depend
  /// on the implementation of containers.
  friend auto operator<=>(const Resource&, const Resource&) = default;
};

/// Transparent order of resources, for lookups by view.
struct ResourceOrder {
  using is_transparent = void;
  bool operator()(const ResourceView& left, const ResourceView& right) const noexcept {
    return left < right;
  }
};

/// Claim on a whole lock, in a mode. A mutex is X; a read-write lock is S or X.
struct Whole {
  LockMode mode = LockMode::exclusive;

  friend bool operator==(const Whole&, const Whole&) = default;
};

/// Claim on permits of a semaphore. The first holder defines the capacity.
struct Permits {
  std::uint32_t capacity = 1;
  std::uint32_t wanted = 1;

  friend bool operator==(const Permits&, const Permits&) = default;
};

/// BytesRange in eight bytes. Few items are ranges, but the variant makes all items as large.
class BoxedRange {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, as the range itself
  BoxedRange(BytesRange range) : range_(std::move(range)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const BytesRange&() const noexcept { return *range_; }

  [[nodiscard]] const std::string& start() const noexcept { return range_->start(); }
  [[nodiscard]] const std::optional<std::string>& end() const noexcept { return range_->end(); }
  [[nodiscard]] bool contains(std::string_view key) const noexcept { return range_->contains(key); }
  [[nodiscard]] bool overlaps(const BytesRange& other) const noexcept {
    return range_->overlaps(other);
  }

  friend bool operator==(const BoxedRange&, const BoxedRange&) = default;
  friend bool operator==(const BoxedRange& left, const BytesRange& right) {
    return *left.range_ == right;
  }

 private:
  Box<BytesRange> range_;  ///< Range; empty only after a move.
};

/// Claim on an interval of keys of a space, in a mode.
struct Keys {
  BoxedRange range = BytesRange::all();
  LockMode mode = LockMode::exclusive;

  friend bool operator==(const Keys&, const Keys&) = default;
};

/// What an item claims of its resource. INVARIANT: the index is part of the log and of snapshots,
/// so new kinds are added at the end.
using Claim = std::variant<Whole, Permits, Keys>;

/// Part of a request: a claim on one resource.
struct Item {
  SharedString name{};
  Claim claim{};

  [[nodiscard]] ResourceKind kind() const noexcept {
    return std::holds_alternative<Keys>(claim) ? ResourceKind::space : ResourceKind::name;
  }
  [[nodiscard]] Resource resource() const { return {.name = name, .kind = kind()}; }
  [[nodiscard]] ResourceView resource_view() const noexcept {
    return {.name = name.view(), .kind = kind()};
  }
  [[nodiscard]] bool is_at(const ResourceView& resource) const noexcept {
    return resource_view() == resource;
  }

  friend bool operator==(const Item&, const Item&) = default;
};

/// Mode of an item. REQUIRES: it is no claim on permits, which have no mode.
[[nodiscard]] inline LockMode mode_of(const Item& item) {
  const auto* keys = std::get_if<Keys>(&item.claim);
  return keys != nullptr ? keys->mode : std::get<Whole>(item.claim).mode;
}
inline void set_mode(Item& item, LockMode mode) {
  if (auto* keys = std::get_if<Keys>(&item.claim)) {
    keys->mode = mode;
  } else {
    std::get<Whole>(item.claim).mode = mode;
  }
}

/// Number of kinds of claims, for counters: one per mode, and one for permits.
inline constexpr std::size_t claim_kinds = all_lock_modes.size() + 1;
[[nodiscard]] inline std::size_t kind_of(const Claim& claim) noexcept {
  if (const auto* whole = std::get_if<Whole>(&claim)) {
    return static_cast<std::size_t>(whole->mode);
  }
  const auto* keys = std::get_if<Keys>(&claim);
  return keys != nullptr ? static_cast<std::size_t>(keys->mode) : claim_kinds - 1;
}

/// Items of one request. Most requests have one, which needs no allocation.
using Items = absl::InlinedVector<Item, 1>;

/// Canonical order of the items of a request: by resource, then by the first key.
[[nodiscard]] inline bool comes_before(const Item& left, const Item& right) {
  if (left.name != right.name || left.kind() != right.kind()) {
    return left.resource_view() < right.resource_view();
  }
  const auto* a = std::get_if<Keys>(&left.claim);
  const auto* b = std::get_if<Keys>(&right.claim);
  return a != nullptr && b != nullptr && a->range.start() < b->range.start();
}

/// Whether two requests cannot hold these claims on one resource at once. Permits never conflict in
/// pairs; they are counted.
[[nodiscard]] inline bool conflict(const Claim& left, const Claim& right) {
  if (const auto* whole = std::get_if<Whole>(&left)) {
    const auto* other = std::get_if<Whole>(&right);
    return other != nullptr && !compatible_with(whole->mode, other->mode);
  }
  if (const auto* keys = std::get_if<Keys>(&left)) {
    const auto* other = std::get_if<Keys>(&right);
    return other != nullptr && keys->range.overlaps(other->range) &&
           !compatible_with(keys->mode, other->mode);
  }
  return false;
}

}  // namespace tenure::core
