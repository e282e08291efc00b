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

/// One of the servers, as a voter: whether it can be asked, since when it runs, and what time it
/// has. All on the loop's thread.
class Voter {
 public:
  struct Callbacks {
    std::function<void()> changed;  ///< It can be asked, or cannot.
    std::function<void(std::string_view)> message;
    std::function<void()> idle;                ///< All is answered.
    std::function<void(std::string)> warning;  ///< Something that people should know.
  };

  /// Questions that one that does not answer keeps for later; more are not kept.
  static constexpr std::size_t queued_max = 10'000;

  Voter(boost::asio::io_context& loop, const redis::ServerOptions& server,
        const std::string& channel, Callbacks callbacks);

  void start();
  void stop(const Error& why);

  [[nodiscard]] const std::string& where() const noexcept { return pipeline_->where(); }
  /// It stands, and has said who it is.
  [[nodiscard]] bool is_ready() const noexcept { return is_identified_ && pipeline_->is_ready(); }
  /// An answer can be expected.
  [[nodiscard]] bool is_responsive() const noexcept { return is_ready() && !is_unresponsive_; }
  /// Why it cannot be asked; empty before the first attempt.
  [[nodiscard]] const std::optional<Error>& last_error() const noexcept { return last_error_; }
  /// Differs from start to start; empty if it does not say.
  [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }

  /// It has run for less than this, by what it says: it may have forgotten a vote.
  [[nodiscard]] bool is_younger_than(std::chrono::milliseconds age, sys::BootTime now) const {
    return started_ && now < *started_ + age;
  }
  /// What its clock shows, in µs; nothing if it never said so.
  [[nodiscard]] std::optional<std::int64_t> server_micros(sys::BootTime now) const;
  void update_clock(std::int64_t micros, sys::BootTime now);

  /// Leaves with the next flush(). False, and nobody is told: too many are kept already.
  [[nodiscard]] bool run(redis::Command command);
  void flush() { pipeline_->flush(); }
  [[nodiscard]] bool is_idle() const noexcept { return unanswered_ == 0; }
  /// It did not answer in time: from now on nobody waits for it, until it does.
  void mark_unresponsive() noexcept { is_unresponsive_ = true; }

 private:
  void ready();
  void info_received(const Result<redis::Command::Response>& answer);
  void disconnected(const Error& why);

  Callbacks callbacks_;
  std::shared_ptr<redis::Pipeline> pipeline_;
  redis::Subscriber subscriber_;
  std::size_t unanswered_ = 0;
  bool is_identified_ = false;
  bool is_unresponsive_ = false;
  std::optional<Error> last_error_;
  std::string run_id_;
  std::optional<sys::BootTime> started_;         ///< At the latest.
  std::optional<std::int64_t> clock_offset_us_;  ///< Of our time since boot, in µs.
};

}  // namespace tenure::backends::redlock
