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

/// The machine of "127.0.0.1:5000" or "[::1]:5000"; an address without a port is one already.
[[nodiscard]] std::string_view machine_of(std::string_view address) noexcept;

/// Which denials are worth a line in the log: of each who and what the first, and then one in every
/// minute that says how many there were. Remembers a bounded number of them; beyond that, strangers
/// are taken together. Of one thread.
class Denials {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds quiet{60};
  static constexpr std::size_t known_max = 1024;

  struct Line {
    std::string who{};       ///< Or "others".
    std::uint64_t before{};  ///< So many were not told since the last line.
  };
  /// Nothing: it was told a moment ago.
  [[nodiscard]] std::optional<Line> note(std::string_view who, std::string_view what,
                                         Clock::time_point now);

 private:
  struct Told {
    Clock::time_point at{};
    std::uint64_t untold = 0;
  };
  void forget_old(Clock::time_point now);

  std::map<std::pair<std::string, std::string>, Told, std::less<>> told_;
};

}  // namespace tenure::server::auth
