#include "core/value_reader.hpp"

#include <type_traits>

namespace tenure::core {
namespace {

constexpr std::uint64_t u32_max = std::numeric_limits<std::uint32_t>::max();
// Larger than any time of a stamp; the sum of two fits into 63 bits.
constexpr std::uint64_t time_max = (1ULL << 62) - 1;

}  // namespace

ClusterTime ValueReader::time() {
  return ClusterTime{static_cast<std::int64_t>(up_to(time_max, "a time"))};
}

std::uint32_t ValueReader::count32(std::string_view what) {
  return static_cast<std::uint32_t>(up_to(u32_max, what));
}

Resource ValueReader::resource() {
  const auto view = resource_view();
  return {.name = view.name, .kind = view.kind};
}

ResourceView ValueReader::resource_view() {
  const auto name = text_view();
  return {.name = name, .kind = one_of(ResourceKind::space, "the kind of a resource")};
}

BytesRange ValueReader::range() {
  const auto start = text();
  if (up_to(1, "the end of a range") == 0) {
    return BytesRange::at_least(start);
  }
  const auto range = BytesRange::half_open(start, text());
  if (!range) {
    set_error("a range is empty");
  }
  return range.value_or(BytesRange::all());
}

Item ValueReader::item() {
  Item item{.name = text_view(), .claim = Whole{}};
  switch (up_to(2, "the kind of an item")) {
    case 0: item.claim = Whole{.mode = mode()}; break;
    case 1: {
      const auto capacity = count32("a capacity");
      item.claim = Permits{.capacity = capacity, .wanted = count32("a number of permits")};
      break;
    }
    default: {
      const auto held = mode();
      item.claim = Keys{.range = range(), .mode = held};
      break;
    }
  }
  return item;
}

std::vector<Item> ValueReader::items() {
  std::vector<Item> all;
  repeat([&] { all.push_back(item()); });
  return all;
}

Limits ValueReader::limits(ClusterVersion version) {
  Limits limits;
  for_each_limit(limits, version, [this](std::string_view name, auto& value) {
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, ClusterTime>) {
      value = any_time();
    } else {
      value = static_cast<Value>(up_to(std::numeric_limits<Value>::max(), name));
    }
  });
  return limits;
}

void ValueReader::expect_end() {
  if (ok() && in_.left() > 0) {
    set_error("trailing bytes after the end");
  }
}

}  // namespace tenure::core
