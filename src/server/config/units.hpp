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
[[nodiscard]] std::string print_duration(std::chrono::microseconds duration);

/// Parses "64MiB", or bytes without a unit. The units are B, KiB, MiB, GiB, TiB.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
[[nodiscard]] std::string print_size(std::uint64_t bytes);

/// Parses an integer; underscores may separate its digits, as in TOML.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text);

/// Host and port.
struct Address {
  std::string host;  ///< Host name or IP address, without brackets.
  std::uint16_t port = 0;

  /// Whether only this machine can connect to it.
  [[nodiscard]] bool is_loopback() const;
  /// Whether it means all addresses of a machine. A peer that connects to it reaches itself.
  [[nodiscard]] bool is_wildcard() const;
};

/// Parses "127.0.0.1:7420", "[::1]:7420", "localhost:0".
[[nodiscard]] Result<Address> parse_address(std::string_view text);

/// Whether `address` is valid and other machines can connect to it.
[[nodiscard]] bool is_open_to_network(std::string_view address);

/// `invalid_argument` unless other machines can connect to it: a port, and no wildcard address.
[[nodiscard]] Result<void> check_advertised_address(std::string_view text);

/// Levenshtein distance.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

}  // namespace tenure::server
