#include "backends/redis/slots.hpp"

#include <algorithm>
#include <charconv>

namespace tenure::backends::redis {
namespace {

/// Lookup table of CRC-16/XMODEM, as Redis Cluster uses it.
constexpr std::array<std::uint16_t, 256> crc_table() {
  constexpr std::uint16_t polynomial = 0x1021;
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned rest = byte << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      rest = (rest & 0x8000U) != 0 ? (rest << 1U) ^ polynomial : rest << 1U;
    }
    table[byte] = static_cast<std::uint16_t>(rest);
  }
  return table;
}

/// CRC-16/XMODEM.
std::uint16_t crc_of(std::string_view text) {
  static constexpr auto table = crc_table();
  unsigned crc = 0;
  for (const char byte : text) {
    crc = (crc << 8U) ^ table[((crc >> 8U) ^ static_cast<unsigned char>(byte)) & 0xFFU];
  }
  return static_cast<std::uint16_t>(crc);
}

/// Parses a text that consists of a number only.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && rest == end;
}

/// Consumes a RESP2 bulk string such as "$3\r\nabc\r\n".
std::optional<std::string_view> take_bulk(std::string_view& wire) {
  const auto line = wire.find("\r\n");
  std::size_t size = 0;
  if (line == std::string_view::npos || !wire.starts_with('$') ||
      !read_number(wire.substr(1, line - 1), size) || wire.size() < line + 2 + size) {
    return std::nullopt;
  }
  const auto bulk = wire.substr(line + 2, size);
  wire.remove_prefix(std::min(line + 2 + size + 2, wire.size()));
  return bulk;
}

/// Index of a node in `owners`, added if it is new; absent if the reply is invalid.
std::optional<std::uint16_t> index_of(SlotTable& table, const Reply& node,
                                      const std::string& host) {
  const auto port = node.number_at(1);
  if (port < 1 || port > 65535 || table.owners.size() >= SlotTable::unassigned) {
    return std::nullopt;
  }
  const auto named = node.text_at(0);
  const bool is_unknown = named.empty() || named == "?";
  const SlotTable::Owner owner{.id = std::string(node.text_at(2)),
                               .endpoint = {.host = is_unknown ? host : std::string(named),
                                            .port = static_cast<std::uint16_t>(port)}};
  const auto known = std::ranges::find(table.owners, owner);
  const auto index = static_cast<std::uint16_t>(known - table.owners.begin());
  if (known == table.owners.end()) {
    table.owners.push_back(owner);
  }
  return index;
}

}  // namespace

Slot slot_of(std::string_view key) {
  const auto open = key.find('{');
  if (open != std::string_view::npos) {
    const auto close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  return crc_of(key) % slots_count;
}

std::shared_ptr<const SlotTags> find_slot_tags(std::string_view prefix) {
  constexpr std::uint32_t none = 0;
  auto tags = std::make_shared<SlotTags>();
  tags->fill(none);
  const std::string start = std::string(prefix) + ":";
  std::size_t missing = slots_count;
  for (std::uint32_t number = none + 1; missing > 0; ++number) {
    auto& tag = (*tags)[crc_of(start + std::to_string(number)) % slots_count];
    if (tag == none) {
      tag = number;
      --missing;
    }
  }
  return tags;
}

std::optional<std::string_view> first_key_of(std::string_view command) {
  const auto head = command.find("\r\n");
  if (head == std::string_view::npos) {
    return std::nullopt;
  }
  command.remove_prefix(head + 2);
  const auto name = take_bulk(command);
  const auto sha = take_bulk(command);
  const auto count = take_bulk(command);
  if (name != "EVALSHA" || !sha || !count || *count == "0") {
    return std::nullopt;
  }
  return take_bulk(command);
}

std::optional<SlotTable> table_from(const Reply& reply, const std::string& host) {
  if (reply.kind != Reply::Kind::array) {
    return std::nullopt;
  }
  SlotTable table;
  for (const auto* range : reply.elements) {
    const auto first = range->number_at(0);
    const auto last = range->number_at(1);
    if (range->elements.size() < 3 || first < 0 || last < first ||
        last >= static_cast<std::int64_t>(slots_count)) {
      return std::nullopt;
    }
    const auto index = index_of(table, *range->elements[2], host);
    if (!index) {
      return std::nullopt;
    }
    std::fill(table.owner_of.begin() + first, table.owner_of.begin() + last + 1, *index);
  }
  return table;
}

std::uint64_t epoch_from(std::string_view words) {
  constexpr std::string_view key = "cluster_current_epoch:";
  const auto at = words.find(key);
  std::uint64_t epoch = 0;
  if (at != std::string_view::npos) {
    const auto rest = words.substr(at + key.size());
    std::from_chars(rest.data(), rest.data() + rest.size(), epoch);
  }
  return epoch;
}

std::optional<Redirection> redirection_from(std::string_view words, const std::string& host) {
  if (!words.starts_with("MOVED ") && !words.starts_with("ASK ")) {
    return std::nullopt;
  }
  words.remove_prefix(words.find(' ') + 1);
  const auto space = words.find(' ');
  Redirection found;
  if (space == std::string_view::npos || !read_number(words.substr(0, space), found.slot) ||
      found.slot >= slots_count) {
    return std::nullopt;
  }
  const auto target = words.substr(space + 1);
  // IPv6 addresses have no brackets here, so the port follows the last colon.
  const auto colon = target.rfind(':');
  if (colon == std::string_view::npos ||
      !read_number(target.substr(colon + 1), found.endpoint.port)) {
    return std::nullopt;
  }
  const auto named = target.substr(0, colon);
  found.endpoint.host = named.empty() || named == "?" ? host : std::string(named);
  return found;
}

}  // namespace tenure::backends::redis
