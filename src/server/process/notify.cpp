#include "server/process/notify.hpp"

#include <algorithm>
#include <cstdint>

#include <boost/asio/post.hpp>
#include <systemd/sd-daemon.h>

namespace tenure::server {
namespace {

/// A newline would begin another assignment.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

void tell(const std::string& state) {
  // Keeps the variable: children are not ours to think of, there are none.
  (void)sd_notify(0, state.c_str());
}

}  // namespace

ServiceNotifier::ServiceNotifier(boost::asio::io_context& loop) : timer_(loop) {
  std::uint64_t interval = 0;
  if (sd_watchdog_enabled(0, &interval) > 0) {
    watchdog_ = std::chrono::microseconds(static_cast<std::int64_t>(interval));
  }
}

void ServiceNotifier::ready(std::string_view status) {
  tell("READY=1\nSTATUS=" + one_line(status));
  if (watchdog_) {
    boost::asio::post(timer_.get_executor(), [this] { feed(); });
  }
}

void ServiceNotifier::status(std::string_view status) const {
  tell("STATUS=" + one_line(status));
}

void ServiceNotifier::stopping() const {
  tell("STOPPING=1");
}

void ServiceNotifier::feed() {
  tell("WATCHDOG=1");
  // Twice in each interval, as sd_watchdog_enabled(3) recommends.
  timer_.expires_after(*watchdog_ / 2);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      feed();
    }
  });
}

}  // namespace tenure::server
