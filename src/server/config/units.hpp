#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

namespace tenure::server {

/// "250ms", "30s", "2m": a whole number and a unit of us, ms, s, m, h, d.
[[nodiscard]] Result<std::chrono::microseconds> parse_duration(std::string_view text);
/// In the largest unit that needs no fraction.
[[nodiscard]] std::string print_duration(std::chrono::microseconds duration);

/// "64MiB" or bytes without a unit; the units are B, KiB, MiB, GiB, TiB.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
[[nodiscard]] std::string print_size(std::uint64_t bytes);

/// A whole number; underscores may part its digits, as in TOML.
[[nodiscard]] Result<std::uint64_t> parse_count(std::string_view text);

/// Where to listen.
struct Address {
  std::string host;  ///< A name or a number, without brackets.
  std::uint16_t port = 0;

  /// Can it be reached from this machine only?
  [[nodiscard]] bool is_loopback() const;
  /// All addresses of this machine, so that it is none to call: whoever does calls itself.
  [[nodiscard]] bool is_wildcard() const;
};

/// "127.0.0.1:7420", "[::1]:7420", "localhost:0".
[[nodiscard]] Result<Address> parse_address(std::string_view text);

/// True if `address` parses and other machines can connect to it.
[[nodiscard]] bool is_open_to_network(std::string_view address);

/// `invalid_argument` unless others can call it: with a port, and of one machine.
[[nodiscard]] Result<void> check_advertised_address(std::string_view text);

/// How many letters must be changed, added or taken away to make one word of the other.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

}  // namespace tenure::server
