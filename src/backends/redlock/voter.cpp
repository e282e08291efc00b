#include "backends/redlock/voter.hpp"

#include <algorithm>
#include <utility>

#include "backends/redlock/scripts.hpp"
#include "sys/parse_number.hpp"

namespace tenure::backends::redlock {
namespace {

/// Time since boot in µs.
std::int64_t micros_of(sys::BootTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

}  // namespace

Voter::Voter(boost::asio::io_context& loop, const redis::ServerOptions& server,
             const std::string& channel, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      pipeline_(std::make_shared<redis::Pipeline>(
          loop, server,
          redis::Pipeline::Callbacks{
              .ready = [this] { ready(); },
              .disconnected = [this](const Error& why) { disconnected(why); },
              .idle = [] {},
              .warning = callbacks_.warning},
          all_scripts())),
      // The state of the subscription does not matter: waiters retry without notifications, too.
      subscriber_(loop, server, channel,
                  redis::Subscriber::Callbacks{.ready = [] {},
                                               .message = callbacks_.message,
                                               .disconnected = [](const Error&) {}}) {}

void Voter::start() {
  pipeline_->start();
  subscriber_.start();
}

void Voter::stop(const Error& why) {
  is_identified_ = false;
  subscriber_.stop();
  pipeline_->stop(why);
}

bool Voter::run(redis::Command command) {
  if (unanswered_ >= queued_max && !is_responsive()) {
    return false;
  }
  ++unanswered_;
  command.on_reply = [this, answered = std::move(command.on_reply)](
                         const Result<redis::Command::Response>& answer) mutable {
    --unanswered_;
    if (answer) {
      is_unresponsive_ = false;
    }
    answered(answer);
    if (unanswered_ == 0) {
      callbacks_.idle();
    }
  };
  pipeline_->run(std::move(command));
  return true;
}

void Voter::ready() {
  // The server may have restarted. It has no vote before it reports its uptime.
  is_identified_ = false;
  pipeline_->run({.encoded = redis::encode_command({"INFO", "server"}),
                  .on_reply = [this](const auto& answer) { info_received(answer); },
                  .retry = redis::Command::Retry::until_timeout});
  pipeline_->flush();
}

void Voter::info_received(const Result<redis::Command::Response>& answer) {
  if (!pipeline_->is_ready()) {
    return;
  }
  started_.reset();
  run_id_.clear();
  // Without the right to INFO the uptime is unknown, and the server votes at once.
  if (answer) {
    const auto now = sys::BootClock::now();
    const std::string_view text = answer->reply.text;
    run_id_ = redis::info_field(text, "run_id");
    if (const auto seconds =
            sys::parse_number<std::int64_t>(redis::info_field(text, "uptime_in_seconds"))) {
      // uptime_in_seconds is a difference of two times in whole seconds, so a server that is 20 ms
      // old may report 1. Subtracting 1 gives the latest possible start.
      started_ = now - std::chrono::seconds(std::max<std::int64_t>(0, *seconds - 1));
    }
    if (const auto micros =
            sys::parse_number<std::int64_t>(redis::info_field(text, "server_time_usec"))) {
      update_clock(*micros, now);
    }
  }
  is_identified_ = true;
  is_unresponsive_ = false;
  last_error_.reset();
  callbacks_.changed();
}

void Voter::disconnected(const Error& why) {
  is_identified_ = false;
  last_error_ = why;
  callbacks_.changed();
}

std::optional<std::int64_t> Voter::server_micros(sys::BootTime now) const {
  return clock_offset_us_ ? std::optional(micros_of(now) + *clock_offset_us_) : std::nullopt;
}

void Voter::update_clock(std::int64_t micros, sys::BootTime now) {
  clock_offset_us_ = micros - micros_of(now);
}

}  // namespace tenure::backends::redlock
