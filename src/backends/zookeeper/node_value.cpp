#include "backends/zookeeper/node_value.hpp"

#include "sys/parse_number.hpp"
#include "sys/take_until.hpp"
#include "sys/to_hex.hpp"

namespace tenure::backends::zookeeper {
std::string write_value(const Value& value) {
  auto text = value.owner + "\nlease=" + sys::to_hex(value.lease.get()) +
              " request=" + sys::to_hex(value.request.get());
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
  Value value{.owner = std::string(sys::take_until(text, '\n').substr(0, owner_bytes_max))};
  auto facts = sys::take_until(text, '\n');
  while (!facts.empty()) {
    auto fact = sys::take_until(facts, ' ');
    const auto key = sys::take_until(fact, '=');
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
