#include "server/process/notify.hpp"

#include <algorithm>
#include <cstdint>

#include <boost/asio/post.hpp>
#include <systemd/sd-daemon.h>

namespace tenure::server {
namespace {

/// Text without newlines: a newline would start another assignment of the protocol.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

void send(const std::string& state) {
  // unset_environment is 0: tenured starts no child process that could inherit the variable.
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
  send("READY=1\nSTATUS=" + one_line(status));
  if (watchdog_) {
    boost::asio::post(timer_.get_executor(), [this] { notify_watchdog(); });
  }
}

void ServiceNotifier::status(std::string_view status) const {
  send("STATUS=" + one_line(status));
}

void ServiceNotifier::stopping() const {
  send("STOPPING=1");
}

void ServiceNotifier::notify_watchdog() {
  send("WATCHDOG=1");
  // Twice in each interval, as sd_watchdog_enabled(3) recommends.
  timer_.expires_after(*watchdog_ / 2);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      notify_watchdog();
    }
  });
}

}  // namespace tenure::server
