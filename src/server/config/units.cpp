#include "server/config/units.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "sys/parse_number.hpp"

namespace tenure::server {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first. print() takes the first unit that divides the value.
constexpr std::array time_units{
    Unit{"d", 86'400'000'000}, Unit{"h", 3'600'000'000}, Unit{"m", 60'000'000},
    Unit{"s", 1'000'000},      Unit{"ms", 1'000},        Unit{"us", 1},
};
constexpr std::array size_units{
    Unit{"TiB", 1ULL << 40U},
    Unit{"GiB", 1ULL << 30U},
    Unit{"MiB", 1ULL << 20U},
    Unit{"KiB", 1ULL << 10U},
    Unit{"B", 1},
};

std::unexpected<Error> wrong(std::string_view text, std::string_view expected) {
  return fail(Errc::invalid_argument,
              "'" + std::string(text) + "' is not " + std::string(expected));
}

/// Leading digits, and the rest of the text.
std::pair<std::string_view, std::string_view> split(std::string_view text) {
  const auto end = std::min(text.find_first_not_of("0123456789_"), text.size());
  return {text.substr(0, end), text.substr(end)};
}

/// Product, or an error on overflow. The maximum is that of a signed integer, so that durations and
/// TOML integers can hold it.
Result<std::uint64_t> times(std::uint64_t number, std::uint64_t factor, std::string_view text) {
  if (number > std::numeric_limits<std::int64_t>::max() / factor) {
    return fail(Errc::invalid_argument, "'" + std::string(text) + "' is too large");
  }
  return number * factor;
}

/// `expected` completes the error: "'5 apples' is not …".
Result<std::uint64_t> parse_with_unit(std::string_view text, std::span<const Unit> units,
                                      std::string_view expected) {
  const auto [digits, unit] = split(text);
  const auto number = parse_count(digits);
  const auto it = std::ranges::find(units, unit, &Unit::name);
  if (!number || it == units.end()) {
    return wrong(text, expected);
  }
  return times(*number, it->factor, text);
}

/// Largest unit that divides the amount, so that printing loses nothing.
const Unit& largest_whole(std::uint64_t amount, std::span<const Unit> units) {
  return amount == 0 ? units.back() : *std::ranges::find_if(units, [&](const Unit& unit) {
    return amount % unit.factor == 0;
  });
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  const auto number = sys::parse_number<std::uint64_t>(digits);
  return number ? Result<std::uint64_t>(*number) : wrong(text, "a whole number");
}

Result<std::chrono::microseconds> parse_duration(std::string_view text) {
  const auto count = parse_with_unit(
      text, time_units, "a duration such as 250ms, 30s or 2m (units: us, ms, s, m, h, d)");
  if (!count) {
    return std::unexpected(count.error());
  }
  return std::chrono::microseconds(static_cast<std::int64_t>(*count));
}

std::string print_duration(std::chrono::microseconds duration) {
  const auto count = static_cast<std::uint64_t>(duration.count());
  if (count == 0) {
    return "0s";
  }
  const auto& unit = largest_whole(count, time_units);
  return std::to_string(count / unit.factor) + std::string(unit.name);
}

Result<std::uint64_t> parse_size(std::string_view text) {
  // Without a unit the number counts bytes.
  if (split(text).second.empty()) {
    return parse_count(text);
  }
  return parse_with_unit(text, size_units,
                         "a size such as 64MiB or 4096 (units: B, KiB, MiB, GiB, TiB)");
}

std::string print_size(std::uint64_t bytes) {
  const auto& unit = largest_whole(bytes, size_units);
  return std::to_string(bytes / unit.factor) + std::string(unit.name);
}

bool Address::is_loopback() const {
  boost::system::error_code error;
  const auto number = boost::asio::ip::make_address(host, error);
  return error ? host == "localhost" : number.is_loopback();
}

Result<Address> parse_address(std::string_view text) {
  constexpr std::string_view expected =
      "an address such as 127.0.0.1:7420 or [::1]:7420 (0.0.0.0 for all, port 0 for any)";
  // The last colon: an IPv6 address contains others.
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return wrong(text, expected);
  }
  auto host = text.substr(0, colon);
  const auto port = parse_count(text.substr(colon + 1));
  if (!port || *port > std::numeric_limits<std::uint16_t>::max()) {
    return wrong(text, expected);
  }
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) {
    host = host.substr(1, host.size() - 2);
  }
  boost::system::error_code error;
  const auto number = boost::asio::ip::make_address(host, error);
  const bool is_name = error && !host.empty() && std::ranges::all_of(host, [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                (c >= '0' && c <= '9') || c == '-' || c == '.';
                       });
  // Brackets if and only if the host is an IPv6 address.
  const bool is_number = !error && number.is_v6() == has_brackets;
  if (!is_number && (!is_name || has_brackets)) {
    return wrong(text, expected);
  }
  return Address{.host = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

bool is_open_to_network(std::string_view address) {
  const auto parsed = parse_address(address);
  return parsed && !parsed->is_loopback();
}

bool Address::is_wildcard() const {
  boost::system::error_code error;
  const auto number = boost::asio::ip::make_address(host, error);
  return !error && number.is_unspecified();
}

Result<void> check_advertised_address(std::string_view text) {
  const auto address = parse_address(text);
  if (!address) {
    return std::unexpected(address.error());
  }
  if (address->port == 0 || address->is_wildcard()) {
    return fail(Errc::invalid_argument,
                "'" + std::string(text) +
                    "' cannot be advertised: expected a host other than a wildcard, and a port");
  }
  return {};
}

std::size_t edit_distance(std::string_view left, std::string_view right) {
  // Dynamic programming with one row: row[j] is the distance of the first i letters of `left` to
  // the first j letters of `right`.
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 1; i <= left.size(); ++i) {
    auto diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const auto change = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row.back();
}

}  // namespace tenure::server
