#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tenure::server {

/// Client of the systemd notification protocol (sd_notify(3)). Does nothing without NOTIFY_SOCKET
/// in the environment. Belongs to the thread of its loop after ready().
class ServiceNotifier {
 public:
  /// Sends the watchdog notifications from this loop, so that systemd restarts a process whose loop
  /// hangs.
  explicit ServiceNotifier(boost::asio::io_context& loop);

  /// Sends READY=1 and starts the watchdog notifications, if the watchdog is enabled.
  void ready(std::string_view status);
  /// Sets the status line of `systemctl status`.
  void status(std::string_view status) const;
  /// Sends STOPPING=1. Watchdog notifications continue while the loop runs.
  void stopping() const;

 private:
  void notify_watchdog();

  boost::asio::steady_timer timer_;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace tenure::server
