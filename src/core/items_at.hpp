#pragma once

#include <algorithm>
#include <span>

#include "core/item.hpp"

namespace tenure::core {

/// Items that claim one resource. REQUIRES: `items` is in the order of comes_before().
[[nodiscard]] inline std::span<const Item> items_at(std::span<const Item> items,
                                                    const ResourceView& resource) {
  if (items.size() == 1) {
    return items.front().is_at(resource) ? items : std::span<const Item>();
  }
  const auto found = std::ranges::equal_range(items, resource, {}, &Item::resource_view);
  return {found.begin(), found.end()};
}

}  // namespace tenure::core
