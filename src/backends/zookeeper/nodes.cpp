#include "backends/zookeeper/nodes.hpp"

#include <array>

#include "sys/parse_number.hpp"
#include "sys/random.hpp"

namespace tenure::backends::zookeeper {
namespace {

struct Marker {
  std::string_view text;
  Kind kind;
};

/// Apache Curator's (lock-, __READ__, __WRIT__, lease-), which the Go client shares, and Kazoo's.
constexpr std::array markers{
    Marker{"__WRIT__", Kind::write}, Marker{"__READ__", Kind::read}, Marker{"__lock__", Kind::lock},
    Marker{"__rlock__", Kind::read}, Marker{"lock-", Kind::lock},    Marker{"lease-", Kind::lease},
};

constexpr std::string_view marker_of(Kind kind) {
  switch (kind) {
    case Kind::lock: return "lock-";
    case Kind::write: return "__WRIT__";
    case Kind::read: return "__READ__";
    case Kind::lease: return "lease-";
  }
  return {};
}

/// Written by "%010d": ten characters, the sign included, or eleven.
constexpr std::size_t width = 10;

std::optional<Sequence> sequence_from(std::string_view text) {
  const auto number = sys::parse_number<decltype(Sequence::number)>(text);
  if (text.size() < width || text.size() > width + 1 || !number) {
    return std::nullopt;
  }
  return Sequence{*number};
}

/// `x-SESSION-SEQUENCE`: the lock of ZooKeeper's own recipes.
std::optional<Ticket> ticket_of_recipe(std::string_view node) {
  if (!node.starts_with("x-")) {
    return std::nullopt;
  }
  const auto digits = node.find_last_not_of("0123456789");
  const auto before = node.find_last_not_of("0123456789", digits - 1);
  // A negative sequence number has its own '-' next to the separator.
  const auto begin = before + 1 == digits && digits > 2 ? digits : digits + 1;
  const auto sequence = sequence_from(node.substr(begin));
  return sequence ? std::optional(Ticket{.sequence = *sequence}) : std::nullopt;
}

}  // namespace

std::optional<Ticket> ticket_of(std::string_view node) {
  for (const auto digits : {width, width + 1}) {
    if (node.size() < digits) {
      continue;
    }
    const auto name = node.substr(0, node.size() - digits);
    for (const auto& marker : markers) {
      if (!name.ends_with(marker.text)) {
        continue;
      }
      if (const auto sequence = sequence_from(node.substr(name.size()))) {
        return Ticket{.sequence = *sequence, .kind = marker.kind};
      }
    }
  }
  return ticket_of_recipe(node);
}

std::string fresh_prefix(Kind kind) {
  constexpr std::string_view digits = "0123456789abcdef";
  // A UUID of version 4, which other libraries expect between "_c_" and the marker.
  constexpr std::string_view form = "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx";
  std::string prefix = "_c_";
  std::uint64_t chance = 0;
  std::size_t left = 0;
  for (const char letter : form) {
    if (letter != 'x') {
      prefix.push_back(letter);
      continue;
    }
    if (left == 0) {
      chance = sys::random_id();
      left = 16;
    }
    prefix.push_back(digits[chance % digits.size()]);
    chance /= digits.size();
    --left;
  }
  prefix.push_back('-');
  return prefix.append(marker_of(kind));
}

}  // namespace tenure::backends::zookeeper
