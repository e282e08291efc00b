#include "backends/redis/slots.hpp"

#include <algorithm>

#include "sys/parse_number.hpp"
#include "sys/take_until.hpp"

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

/// Consumes a RESP2 bulk string such as "$3\r\nabc\r\n".
std::optional<std::string_view> take_bulk(std::string_view& wire) {
  const auto line = wire.find("\r\n");
  if (line == std::string_view::npos || !wire.starts_with('$')) {
    return std::nullopt;
  }
  const auto size = sys::parse_number<std::size_t>(wire.substr(1, line - 1));
  if (!size || wire.size() < line + 2 + *size) {
    return std::nullopt;
  }
  const auto bulk = wire.substr(line + 2, *size);
  wire.remove_prefix(std::min(line + 2 + *size + 2, wire.size()));
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

std::uint64_t epoch_from(std::string_view info) {
  return sys::parse_number<std::uint64_t>(info_field(info, "cluster_current_epoch")).value_or(0);
}

std::optional<Redirection> redirection_from(std::string_view words, const std::string& host) {
  if (!words.starts_with("MOVED ") && !words.starts_with("ASK ")) {
    return std::nullopt;
  }
  (void)sys::take_until(words, ' ');
  const auto slot = sys::parse_number<Slot>(sys::take_until(words, ' '));
  // IPv6 addresses have no brackets here, so the port follows the last colon.
  const auto colon = words.rfind(':');
  if (!slot || *slot >= slots_count || colon == std::string_view::npos) {
    return std::nullopt;
  }
  const auto named = words.substr(0, colon);
  const auto port = sys::parse_number<std::uint16_t>(words.substr(colon + 1));
  if (!port) {
    return std::nullopt;
  }
  const bool is_unknown = named.empty() || named == "?";
  return Redirection{.slot = *slot,
                     .endpoint = {.host = is_unknown ? host : std::string(named), .port = *port}};
}

}  // namespace tenure::backends::redis
