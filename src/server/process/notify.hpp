#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tenure::server {

/// Tells systemd how the service is (sd_notify(3)). Does nothing if nobody listens, that is
/// without NOTIFY_SOCKET in the environment.
class ServiceNotifier {
 public:
  /// The watchdog is fed from this loop, so that one that hangs gets the process restarted.
  explicit ServiceNotifier(boost::asio::io_context& loop);

  /// READY=1, and the watchdog is fed from now on, if there is one.
  void ready(std::string_view status);
  /// One line for `systemctl status`.
  void status(std::string_view status) const;
  /// STOPPING=1. The watchdog is fed on while the loop runs.
  void stopping() const;

 private:
  void feed();

  boost::asio::steady_timer timer_;
  std::optional<std::chrono::microseconds> watchdog_;
};

}  // namespace tenure::server
