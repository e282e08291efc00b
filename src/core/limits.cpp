#include "core/limits.hpp"

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tenure::core {
namespace {

constexpr std::size_t bytes_most = 1 << 20;
constexpr std::size_t state_bytes_most = std::size_t{1} << 40;
constexpr std::uint32_t count_most = 1 << 30;
constexpr ClusterTime time_most = std::chrono::years(10);

/// Upper bounds. Sums and products of limits stay far within 64 bits.
constexpr Limits highest{.name_bytes_max = bytes_most,
                         .key_bytes_max = bytes_most,
                         .owner_bytes_max = bytes_most,
                         .metadata_bytes_max = bytes_most,
                         .items_max = count_most,
                         .renewals_max = count_most,
                         .capacity_max = count_most,
                         .ttl_min = time_most,
                         .ttl_max = time_most,
                         .leases_max = count_most,
                         .leases_per_client_max = count_most,
                         .items_per_lease_max = count_most,
                         .waits_per_lease_max = count_most,
                         .waits_per_client_max = count_most,
                         .waiters_per_lock_max = count_most,
                         .reentries_max = count_most,
                         .answers_per_lease_max = count_most,
                         .events_max = count_most,
                         .state_bytes_max = state_bytes_most,
                         .state_bytes_per_user_max = state_bytes_most,
                         .answer_retention = time_most};

struct Number {
  std::string_view name;
  std::uint64_t value;
};

/// All limits as numbers; a negative time becomes a very large number, which is refused.
std::vector<Number> numbers(const Limits& limits) {
  std::vector<Number> all;
  for_each_limit(limits, [&](std::string_view name, const auto& value) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, ClusterTime>) {
      all.push_back({name, static_cast<std::uint64_t>(value.count())});
    } else {
      all.push_back({name, value});
    }
  });
  return all;
}

}  // namespace

Limits at_version(Limits limits, ClusterVersion version) {
  if (version < version_2) {
    const Limits defaults;
    limits.state_bytes_max = defaults.state_bytes_max;
    limits.state_bytes_per_user_max = defaults.state_bytes_per_user_max;
    limits.answer_retention = defaults.answer_retention;
  }
  return limits;
}

std::optional<Error> check(const Limits& limits) {
  const auto given = numbers(limits);
  // Computed once: both lists have the same order, that of for_each_limit().
  static const auto most = numbers(highest);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto& [name, value] = given[i];
    if (value == 0 || value > most[i].value) {
      const bool is_time = name.starts_with("ttl_") || name == "answer_retention";
      const std::string unit = is_time ? " in microseconds" : "";
      return Error{.code = Errc::invalid_argument,
                   .detail = std::string(name) + unit + ": at least 1, at most " +
                             std::to_string(most[i].value)};
    }
  }
  if (limits.ttl_min > limits.ttl_max) {
    return Error{.code = Errc::invalid_argument, .detail = "ttl_min: at most ttl_max"};
  }
  return std::nullopt;
}

}  // namespace tenure::core
