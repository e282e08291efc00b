#include "server/http/history.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "sys/json_writer.hpp"
#include "sys/quantile.hpp"

namespace tenure::server::http {
namespace {

/// Names of the series, in the order of Sample::values.
constexpr std::array<std::string_view, 17> columns{
    // Rates per second.
    "granted", "released", "expired", "forced", "deadlocks", "renewed", "commands",
    // Counts at the end of the interval.
    "locks", "holds", "waits", "leases",
    // Latencies in seconds.
    "acquire_p50_seconds", "acquire_p99_seconds", "commit_p50_seconds", "commit_p99_seconds",
    "hold_p50_seconds", "fsync_p99_seconds"};

}  // namespace

void History::add(const Totals& totals, const StatusRecord& status,
                  std::chrono::steady_clock::time_point when) {
  const auto seconds = std::chrono::duration<double>(when - when_before_).count();
  if (before_ && seconds > 0) {
    const auto& before = *before_;
    const auto rate = [&](double Totals::* counter) {
      return std::max(0.0, (totals.*counter - before.*counter) / seconds);
    };
    const auto quantile = [&](Totals::Buckets Totals::* buckets, double wanted) {
      return sys::quantile_between(before.*buckets, totals.*buckets, wanted);
    };
    const auto count = [](std::size_t number) { return static_cast<double>(number); };
    samples_.push_back(
        {.number = ++last_number_,
         .values = {rate(&Totals::granted), rate(&Totals::released), rate(&Totals::expired),
                    rate(&Totals::forced), rate(&Totals::deadlocks), rate(&Totals::renewed),
                    rate(&Totals::commands), count(status.locks), count(status.holds),
                    count(status.waits), count(status.leases),
                    quantile(&Totals::acquire_seconds, 0.5),
                    quantile(&Totals::acquire_seconds, 0.99),
                    quantile(&Totals::commit_seconds, 0.5), quantile(&Totals::commit_seconds, 0.99),
                    quantile(&Totals::hold_seconds, 0.5), quantile(&Totals::fsync_seconds, 0.99)}});
    if (samples_.size() > samples_max) {
      samples_.pop_front();
    }
  }
  before_ = totals;
  when_before_ = when;
}

std::string History::write(std::uint64_t after) const {
  const auto first =
      std::ranges::upper_bound(samples_, after, {}, &Sample::number) - samples_.begin();
  sys::JsonWriter json;
  json.object([&] {
    json.field("interval_ms", interval.count());
    json.field("samples_max", samples_max);
    json.field("last", last_number_);
    json.object("series", [&] {
      for (std::size_t column = 0; column < columns.size(); ++column) {
        json.array(columns[column], [&] {
          for (auto it = samples_.begin() + first; it != samples_.end(); ++it) {
            json.value(it->values[column]);
          }
        });
      }
    });
  });
  return json.take() + '\n';
}

}  // namespace tenure::server::http
