#include "wire/items.hpp"

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace tenure::wire {
namespace {

void write(const BytesRange& range, v1::Range& out) {
  out.set_start(range.start());
  if (range.end()) {
    out.set_end(*range.end());
  }
}

/// An item without a claim locks the whole name in exclusive mode.
Result<core::Claim> claim_from(const v1::Item& item) {
  switch (item.claim_case()) {
    // 0 permits are not a request; an unset field means one.
    case v1::Item::kPermits:
      return core::Permits{.capacity = item.permits().capacity(),
                           .wanted = item.permits().wanted() == 0 ? 1 : item.permits().wanted()};
    case v1::Item::kKeys: {
      auto range = range_from(item.keys().range());
      if (!range) {
        return std::unexpected(std::move(range).error());
      }
      const auto mode = mode_from(item.keys().mode());
      if (!mode) {
        return std::unexpected(mode.error());
      }
      return core::Keys{.range = *std::move(range), .mode = *mode};
    }
    case v1::Item::kMode:
    case v1::Item::CLAIM_NOT_SET: break;
  }
  const auto mode = mode_from(item.mode());
  if (!mode) {
    return std::unexpected(mode.error());
  }
  return core::Whole{.mode = *mode};
}

}  // namespace

Result<LockMode> mode_from(v1::Mode mode) {
  if (mode == v1::MODE_UNSPECIFIED) {
    return LockMode::exclusive;
  }
  if (!v1::Mode_IsValid(mode)) {
    return fail(Errc::invalid_argument, "mode " + std::to_string(mode) +
                                            " is not known; 1 (IS) to " +
                                            std::to_string(v1::Mode_MAX) + " (X) are");
  }
  // Inverse of mode_of(), which asserts the numbers.
  return static_cast<LockMode>(static_cast<int>(mode) - 1);
}

v1::Mode mode_of(LockMode mode) {
  // Protobuf enum values are one larger: 0 is UNSPECIFIED.
  static_assert(v1::MODE_INTENTION_SHARED == static_cast<int>(LockMode::intention_shared) + 1);
  static_assert(v1::MODE_EXCLUSIVE == static_cast<int>(LockMode::exclusive) + 1);
  return static_cast<v1::Mode>(static_cast<int>(mode) + 1);
}

Result<BytesRange> range_from(const v1::Range& range) {
  // An empty end would mean an empty range, so its presence is tested, not its length.
  if (!range.has_end()) {
    return BytesRange::at_least(range.start());
  }
  auto half_open = BytesRange::half_open(range.start(), range.end());
  if (!half_open) {
    return fail(Errc::invalid_argument, "the range is empty: its end is not after its start");
  }
  return *std::move(half_open);
}

// The name is not checked here; the store checks names for all interfaces.
Result<core::Item> item_from(const v1::Item& item) {
  auto claim = claim_from(item);
  if (!claim) {
    return std::unexpected(std::move(claim).error());
  }
  return core::Item{.name = item.name(), .claim = *std::move(claim)};
}

void write(const core::Item& item, v1::Item& out) {
  out.set_name(item.name);
  std::visit(
      [&](const auto& claim) {
        using Claim = std::remove_cvref_t<decltype(claim)>;
        if constexpr (std::is_same_v<Claim, core::Whole>) {
          out.set_mode(mode_of(claim.mode));
        } else if constexpr (std::is_same_v<Claim, core::Permits>) {
          out.mutable_permits()->set_capacity(claim.capacity);
          out.mutable_permits()->set_wanted(claim.wanted);
        } else {
          write(claim.range, *out.mutable_keys()->mutable_range());
          out.mutable_keys()->set_mode(mode_of(claim.mode));
        }
      },
      item.claim);
}

void write(const core::CycleStep& step, v1::CycleStep& out) {
  out.set_lease_id(step.lease.get());
  out.set_request_id(step.request.get());
  out.set_owner(step.owner);
  out.set_name(step.resource.name);
  out.set_is_space(step.resource.kind == core::ResourceKind::space);
}

}  // namespace tenure::wire
