#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::server {

/// Parses "250ms", "30s", "2m": an integer and a unit of us, ms, s, m, h, d.
[[nodiscard]] Result<std::chrono::microseconds> parse_duration(std::string_view text);
/// Notation in the largest unit that needs no fraction.
/// ENSURES: parse_duration(print_duration(d)) == d for every d that is not negative.
[[nodiscard]] std::string print_duration(std::chrono::microseconds duration);

/// Parses "64MiB", or bytes without a unit. The units are B, KiB, MiB, GiB, TiB.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
[[nodiscard]] std::string print_size(std::uint64_t bytes);

/// Parses an integer; underscores may separate its digits, as in TOML.
/// Only digits and underscores: no sign, no fraction, no white space.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text);

/// Host and port.
/// Addresses are not resolved here: a name may resolve differently later.
struct Address {
  std::string host;  ///< Host name or IP address, without brackets.
  std::uint16_t port = 0;

  /// Whether only this machine can connect to it.
  [[nodiscard]] bool is_loopback() const;
  /// Whether it means all addresses of a machine. A peer that connects to it reaches itself.
  [[nodiscard]] bool is_wildcard() const;
};

/// Parses "127.0.0.1:7420", "[::1]:7420", "localhost:0".
/// IPv6 addresses require brackets, because the port follows a colon.
[[nodiscard]] Result<Address> parse_address(std::string_view text);

/// Whether `address` is valid and other machines can connect to it.
/// A host name other than localhost counts as reachable: the safe assumption.
[[nodiscard]] bool is_open_to_network(std::string_view address);

/// `invalid_argument` unless other machines can connect to it: a port, and no wildcard address.
[[nodiscard]] Result<void> check_advertised_address(std::string_view text);

/// Levenshtein distance.
/// Cost: the product of the lengths; for short keys only.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

}  // namespace tenure::server
