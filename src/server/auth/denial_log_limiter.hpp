#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tenure::server::auth {

/// Host part of "127.0.0.1:5000" or "[::1]:5000". An address without a port is returned unchanged.
[[nodiscard]] std::string_view host_of(std::string_view address) noexcept;

/// Rate limiter for the log of denied requests. For each (principal, action) it admits the first
/// denial and then one per `interval`, with the number of suppressed ones. Memory is bounded:
/// beyond `entries_max` pairs, further principals share the entry "others". Not thread safe.
///
/// A client without rights could otherwise fill the disk with log lines. The counter of denials in
/// the metrics is not limited.
class DenialLogLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds interval{60};
  static constexpr std::size_t entries_max = 1024;

  struct Entry {
    std::string principal{};     ///< Principal, or "others" when the table is full.
    std::uint64_t suppressed{};  ///< Denials suppressed since the previous entry.
  };
  /// Entry to log; nullopt: suppressed.
  [[nodiscard]] std::optional<Entry> admit(std::string_view principal, std::string_view action,
                                           Clock::time_point now);

 private:
  struct State {
    Clock::time_point at{};
    std::uint64_t suppressed = 0;
  };
  /// Forgets pairs without a logged denial within the interval; their suppressed count is lost.
  void evict_expired(Clock::time_point now);

  std::map<std::pair<std::string, std::string>, State, std::less<>> entries_;
};

}  // namespace tenure::server::auth
