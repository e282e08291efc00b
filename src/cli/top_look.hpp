#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "cli/service.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::cli {

/// A lock that is wanted, or held for long.
struct HotLock {
  std::string name{};
  bool is_space = false;
  std::string owner{};
  std::string claim{};
  v1::Item item{};  ///< Claim of the first holder; meaningless without a token.
  std::string note{};
  std::uint64_t token = 0;
  std::uint64_t holders = 0;
  std::uint64_t waiters = 0;
  std::chrono::milliseconds held{};
  std::chrono::milliseconds longest_wait{};
  std::optional<double> grants{};  ///< A second; not known of one that was not there before.
};

/// How often a second, between two looks.
struct TopRates {
  double granted = 0;
  double released = 0;
  double expired = 0;
  double forced = 0;
  double deadlocks = 0;
  double renewed = 0;
  double commands = 0;
  std::optional<double> acquire_p50{};  ///< In seconds, as all of these.
  std::optional<double> acquire_p99{};
  std::optional<double> commit_p50{};
  std::optional<double> commit_p99{};
};

/// What the service says at one moment, and what is made of it.
struct TopLook {
  v1::TopResponse said{};
  std::vector<HotLock> locks{};
  std::optional<TopRates> rates{};  ///< Nothing at the first look.
};

enum class TopOrder : std::uint8_t { waiters, longest_wait, held, grants, name };

/// Asks the service, and remembers what it said the time before. One thread.
class TopQuestions {
 public:
  TopQuestions(Service service, std::string prefix)
      : service_(std::move(service)), prefix_(std::move(prefix)) {}

  [[nodiscard]] Result<TopLook> ask();

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] TopRates rates(const v1::Counters& now, double seconds) const;
  [[nodiscard]] HotLock hot(const v1::BusyLock& lock, double seconds) const;

  Service service_;
  std::string prefix_;
  std::optional<v1::TopResponse> before_;
  Clock::time_point when_before_{};
};

/// Those whose name or owner contains `filter`, the most of this order first.
[[nodiscard]] std::vector<HotLock> sorted(std::vector<HotLock> locks, TopOrder order,
                                          std::string_view filter);
[[nodiscard]] bool contains(std::string_view text, std::string_view filter);

/// "12", "1.5": of rates.
[[nodiscard]] std::string brief(double number);

/// For pipes: each line begins with what it is about.
[[nodiscard]] std::string text_of(const TopLook& look, TopOrder order);
[[nodiscard]] std::string json_of(const TopLook& look, TopOrder order);

}  // namespace tenure::cli
