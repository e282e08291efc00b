#include "core/value_writer.hpp"

#include <type_traits>
#include <utility>
#include <variant>

namespace tenure::core {

void ValueWriter::put(LockMode mode) {
  number(std::to_underlying(mode));
}

void ValueWriter::put(const Resource& resource) {
  text(resource.name.view());
  number(std::to_underlying(resource.kind));
}

void ValueWriter::put(const BytesRange& range) {
  text(range.start());
  number(range.end() ? 1 : 0);
  if (range.end()) {
    text(*range.end());
  }
}

void ValueWriter::put(const Item& item) {
  text(item.name.view());
  number(item.claim.index());
  if (const auto* whole = std::get_if<Whole>(&item.claim)) {
    put(whole->mode);
  } else if (const auto* permits = std::get_if<Permits>(&item.claim)) {
    number(permits->capacity);
    number(permits->wanted);
  } else {
    const auto& keys = std::get<Keys>(item.claim);
    put(keys.mode);
    put(keys.range);
  }
}

void ValueWriter::put(std::span<const Item> items) {
  number(items.size());
  for (const auto& item : items) {
    put(item);
  }
}

void ValueWriter::put(const Limits& limits, ClusterVersion version) {
  for_each_limit(limits, version, [this](std::string_view, const auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, ClusterTime>) {
      put(value);
    } else {
      number(value);
    }
  });
}

}  // namespace tenure::core
