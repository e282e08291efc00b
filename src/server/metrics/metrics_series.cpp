#include "server/metrics/metrics_series.hpp"

namespace tenure::server {
namespace {

constexpr std::array<const char*, acquire_results> result_names{"granted", "abandoned", "deadlock",
                                                                "expired", "revoked"};
constexpr std::array<const char*, release_reasons> reason_names{"released", "expired", "revoked",
                                                                "forced"};

/// Value of the label `mode`.
std::string mode_name(std::size_t index) {
  return std::string(index < all_lock_modes.size() ? to_string(all_lock_modes[index]) : "permits");
}

}  // namespace

Metrics::Series::Series(std::string_view version) {
  auto& acquire =
      make.counters("tenure_acquire_total",
                    "Acquire requests by mode and result. Result would_block has no mode.");
  auto& locks = make.gauges("tenure_locks_held", "Currently held locks and ranges by mode.");
  for (std::size_t mode = 0; mode < claim_modes; ++mode) {
    for (std::size_t i = 0; i < acquire_results; ++i) {
      acquired[mode][i] = &acquire.Add({{"mode", mode_name(mode)}, {"result", result_names[i]}});
    }
    held[mode] = &locks.Add({{"mode", mode_name(mode)}});
  }
  would_block = &acquire.Add({{"result", "would_block"}});
  auto& release = make.counters("tenure_release_total", "Ended holds by reason.");
  for (std::size_t i = 0; i < release_reasons; ++i) {
    released[i] = &release.Add({{"reason", reason_names[i]}});
  }
  // Present from the start, so that an alert on an increase sees the first failure.
  reload_failed.Add({{"what", "users"}});
  reload_failed.Add({{"what", "certificates"}});
  start_time.Set(
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  make.gauges("tenure_build_info", "Always 1; the version is in the label.")
      .Add({{"version", std::string(version)}})
      .Set(1);
}

}  // namespace tenure::server
