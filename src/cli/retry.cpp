#include "cli/retry.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "sys/jitter.hpp"

namespace tenure::cli {
namespace {

/// A server needs about this time to restart; with jitter, so that the jobs of many machines do not
/// connect at the same moment.
constexpr std::chrono::milliseconds retry_delay{250};

}  // namespace

Result<std::chrono::steady_clock::time_point> retry_end(const Arguments& arguments) {
  const auto window = arguments.duration("--retry");
  if (!window) {
    return std::unexpected(window.error());
  }
  return std::chrono::steady_clock::now() + window->value_or(std::chrono::milliseconds::zero());
}

bool pause_before_retry(std::chrono::steady_clock::time_point end, const std::stop_token& cancel) {
  if (std::chrono::steady_clock::now() >= end || cancel.stop_requested()) {
    return false;
  }
  const auto next = std::chrono::steady_clock::now() + sys::with_jitter(retry_delay);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any ended;
  // Nothing notifies it: the wait ends by the deadline or by the stop token.
  ended.wait_until(lock, cancel, std::min(next, end), [] { return false; });
  return !cancel.stop_requested();
}

}  // namespace tenure::cli
