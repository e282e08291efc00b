#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include <tenure/error.hpp>

#include "backends/redis/pipeline.hpp"
#include "backends/redis/server_options.hpp"
#include "backends/redis/subscriber.hpp"
#include "sys/boot_clock.hpp"

namespace tenure::backends::redlock {

/// One of the voting servers: its connections, whether it responds, its uptime and its clock. Runs
/// on the loop's thread.
class Voter {
 public:
  /// Events for the backend.
  struct Callbacks {
    /// The server became ready, or stopped being so.
    std::function<void()> changed;
    /// Message published to the client's channel.
    std::function<void(std::string_view)> message;
    /// No command is unanswered.
    std::function<void()> idle;
    /// Problem of the server's configuration.
    std::function<void(std::string)> warning;
  };

  /// Limit of the commands queued for a server that does not respond; more are rejected.
  static constexpr std::size_t queued_max = 10'000;

  /// `channel`: channel of the notifications.
  Voter(boost::asio::io_context& loop, const redis::ServerOptions& server,
        const std::string& channel, Callbacks callbacks);

  /// Connects in the background.
  void start();
  /// Closes all connections; unanswered commands fail with this error.
  void stop(const Error& why);

  /// Endpoint for error messages.
  [[nodiscard]] const std::string& where() const noexcept { return pipeline_->where(); }
  /// Connected, and INFO has been answered.
  [[nodiscard]] bool is_ready() const noexcept { return is_identified_ && pipeline_->is_ready(); }
  /// A reply can be expected.
  [[nodiscard]] bool is_responsive() const noexcept { return is_ready() && !is_unresponsive_; }
  /// Why the server is not connected; absent before the first attempt.
  [[nodiscard]] const std::optional<Error>& last_error() const noexcept { return last_error_; }
  /// Id of the server process, different after each start; empty if unknown.
  [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }

  /// The server has run for less than `age`, so it may have lost a vote. False if the uptime is
  /// unknown.
  [[nodiscard]] bool is_younger_than(std::chrono::milliseconds age, sys::BootTime now) const {
    return started_ && now < *started_ + age;
  }
  /// Estimate of the server's clock in µs; absent if unknown.
  [[nodiscard]] std::optional<std::int64_t> server_micros(sys::BootTime now) const;
  /// Records the server's clock from a reply.
  void update_clock(std::int64_t micros, sys::BootTime now);

  /// Queues a command for the next flush(). False, and no callback: queued_max is reached.
  [[nodiscard]] bool run(redis::Command command);
  /// Sends the queued commands.
  void flush() { pipeline_->flush(); }
  /// No command is unanswered.
  [[nodiscard]] bool is_idle() const noexcept { return unanswered_ == 0; }
  /// Excludes the server from quorum calls until its next reply.
  void mark_unresponsive() noexcept { is_unresponsive_ = true; }

 private:
  /// Connected: asks for the uptime.
  void ready();
  /// Reply to INFO.
  void info_received(const Result<redis::Command::Response>& answer);
  /// Connection lost, or could not be made.
  void disconnected(const Error& why);

  /// Callbacks of the backend.
  Callbacks callbacks_;
  /// Connection for commands.
  std::shared_ptr<redis::Pipeline> pipeline_;
  /// Connection for notifications.
  redis::Subscriber subscriber_;
  /// Number of unanswered commands.
  std::size_t unanswered_ = 0;
  /// INFO was answered on this connection.
  bool is_identified_ = false;
  /// A reply missed its deadline, and none has arrived since.
  bool is_unresponsive_ = false;
  /// Why the server is not connected.
  std::optional<Error> last_error_;
  /// Id of the server process.
  std::string run_id_;
  /// Latest possible start of the server.
  std::optional<sys::BootTime> started_;
  /// Server's clock minus the local time since boot, in µs.
  std::optional<std::int64_t> clock_offset_us_;
};

}  // namespace tenure::backends::redlock
