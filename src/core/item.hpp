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

/// A lock by name, and the space of keys of the same name, are two places.
enum class ResourceKind : std::uint8_t { name, space };

/// A place by somebody else's name, to look it up without a copy.
struct ResourceView {
  std::string_view name{};
  ResourceKind kind = ResourceKind::name;

  friend auto operator<=>(const ResourceView&, const ResourceView&) = default;
};

/// Where requests meet: it has holders and one queue.
struct Resource {
  SharedString name{};
  ResourceKind kind = ResourceKind::name;

  // NOLINTNEXTLINE(google-explicit-constructor): as a string is a string_view
  operator ResourceView() const noexcept { return {.name = name.view(), .kind = kind}; }
  /// By name first: effects on several places happen in this order.
  friend auto operator<=>(const Resource&, const Resource&) = default;
};

/// The order of places, for maps that are asked with views.
struct ResourceOrder {
  using is_transparent = void;
  bool operator()(const ResourceView& left, const ResourceView& right) const noexcept {
    return left < right;
  }
};

/// All of a named lock, in a mode. A mutex is X; a read-write lock S or X.
struct Whole {
  LockMode mode = LockMode::exclusive;

  friend bool operator==(const Whole&, const Whole&) = default;
};

/// Some of the permits of a semaphore. Its capacity is what the first holder said.
struct Permits {
  std::uint32_t capacity = 1;
  std::uint32_t wanted = 1;

  friend bool operator==(const Permits&, const Permits&) = default;
};

/// A BytesRange in eight bytes: few items have one, and all items are as large as those.
class BoxedRange {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): it is one
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
  Box<BytesRange> range_;  ///< Empty only after it was moved from.
};

/// An interval of keys of a space, in a mode.
struct Keys {
  BoxedRange range = BytesRange::all();
  LockMode mode = LockMode::exclusive;

  friend bool operator==(const Keys&, const Keys&) = default;
};

using Claim = std::variant<Whole, Permits, Keys>;

/// One thing that a request asks for.
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

/// REQUIRES: no permits, which have no mode.
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

/// Which kind of claim, to count by: its mode, or behind all modes for permits.
inline constexpr std::size_t claim_kinds = all_lock_modes.size() + 1;
[[nodiscard]] inline std::size_t kind_of(const Claim& claim) noexcept {
  if (const auto* whole = std::get_if<Whole>(&claim)) {
    return static_cast<std::size_t>(whole->mode);
  }
  const auto* keys = std::get_if<Keys>(&claim);
  return keys != nullptr ? static_cast<std::size_t>(keys->mode) : claim_kinds - 1;
}

/// The items of one request; most have one.
using Items = absl::InlinedVector<Item, 1>;

/// The order in which a request keeps its items: by place, then by the first key.
[[nodiscard]] inline bool comes_before(const Item& left, const Item& right) {
  if (left.name != right.name || left.kind() != right.kind()) {
    return left.resource_view() < right.resource_view();
  }
  const auto* a = std::get_if<Keys>(&left.claim);
  const auto* b = std::get_if<Keys>(&right.claim);
  return a != nullptr && b != nullptr && a->range.start() < b->range.start();
}

/// May two requests not hold these at one place at once? Permits never conflict in pairs; they are
/// counted.
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
