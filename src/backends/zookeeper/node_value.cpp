#include "backends/zookeeper/node_value.hpp"

#include <algorithm>
#include <charconv>

#include "sys/parse_number.hpp"

namespace tenure::backends::zookeeper {
namespace {

std::string_view take_until(std::string_view& text, char end) {
  const auto part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

std::string hexadecimal(std::uint64_t number) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
  return {digits, end};
}

}  // namespace

std::string write_value(const Value& value) {
  auto text = value.owner + "\nlease=" + hexadecimal(value.lease.get()) +
              " request=" + hexadecimal(value.request.get());
  if (value.capacity > 0) {
    text += " capacity=" + std::to_string(value.capacity);
  }
  if (!value.metadata.empty()) {
    text += '\n' + value.metadata;
  }
  return text;
}

Value read_value(std::string_view text) {
  // Other libraries may write anything: the first line is cut.
  constexpr std::size_t owner_bytes_max = 256;
  Value value{.owner = std::string(take_until(text, '\n').substr(0, owner_bytes_max))};
  auto facts = take_until(text, '\n');
  while (!facts.empty()) {
    auto fact = take_until(facts, ' ');
    const auto key = take_until(fact, '=');
    if (key == "lease") {
      value.lease = LeaseId{sys::parse_number<std::uint64_t>(fact, 16).value_or(0)};
    } else if (key == "request") {
      value.request = RequestId{sys::parse_number<std::uint64_t>(fact, 16).value_or(0)};
    } else if (key == "capacity") {
      value.capacity = sys::parse_number<std::uint32_t>(fact).value_or(0);
    }
  }
  value.metadata = text;
  return value;
}

}  // namespace tenure::backends::zookeeper
