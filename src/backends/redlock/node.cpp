#include "backends/redlock/node.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/redlock/scripts.hpp"
#include "sys/parse_number.hpp"

namespace tenure::backends::redlock {
namespace {

std::int64_t micros_of(sys::BootTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

}  // namespace

Node::Node(boost::asio::io_context& loop, const redis::Address& address, const std::string& channel,
           Calls calls)
    : calls_(std::move(calls)),
      pipeline_(std::make_shared<redis::Pipeline>(
          loop, address,
          redis::Pipeline::Calls{.ready = [this] { ready(); },
                                 .lost = [this](const Error& why) { lost(why); },
                                 .idle = [] {},
                                 .doubtful = calls_.doubtful},
          all_scripts())),
      // Whether it listens or not: who waits asks again by himself now and then.
      waker_(
          loop, address, channel,
          redis::Waker::Calls{.ready = [] {}, .heard = calls_.heard, .lost = [](const Error&) {}}) {
}

void Node::start() {
  pipeline_->start();
  waker_.start();
}

void Node::stop(const Error& why) {
  is_known_ = false;
  waker_.stop();
  pipeline_->stop(why);
}

bool Node::run(redis::Errand errand) {
  if (open_ >= kept_max && !answers()) {
    return false;
  }
  ++open_;
  errand.answered = [this, answered = std::move(errand.answered)](
                        const Result<redis::Errand::Answer>& answer) mutable {
    --open_;
    if (answer) {
      is_silent_ = false;
    }
    answered(answer);
    if (open_ == 0) {
      calls_.idle();
    }
  };
  pipeline_->run(std::move(errand));
  return true;
}

void Node::ready() {
  // Since when it runs may have changed: it has no vote until it says so.
  is_known_ = false;
  const std::array<std::string_view, 2> words{"INFO", "server"};
  std::string command;
  redis::append_command(command, words);
  pipeline_->run({.command = std::move(command),
                  .answered = [this](const auto& answer) { introduced(answer); },
                  .loss = redis::Errand::Loss::fail});
  pipeline_->flush();
}

void Node::introduced(const Result<redis::Errand::Answer>& answer) {
  if (!pipeline_->is_ready()) {
    return;
  }
  started_.reset();
  run_id_.clear();
  // Who may not ask is not told; then its word is taken.
  if (answer) {
    const auto now = sys::BootClock::now();
    const std::string_view text = answer->reply.text;
    run_id_ = redis::info_field(text, "run_id");
    if (const auto seconds =
            sys::parse_number<std::int64_t>(redis::info_field(text, "uptime_in_seconds"))) {
      // The difference of two times in whole seconds: one that is 20 ms old may say 1.
      started_ = now - std::chrono::seconds(std::max<std::int64_t>(0, *seconds - 1));
    }
    if (const auto micros =
            sys::parse_number<std::int64_t>(redis::info_field(text, "server_time_usec"))) {
      learn_time(*micros, now);
    }
  }
  is_known_ = true;
  is_silent_ = false;
  fault_.reset();
  calls_.changed();
}

void Node::lost(const Error& why) {
  is_known_ = false;
  fault_ = why;
  calls_.changed();
}

std::optional<std::int64_t> Node::micros(sys::BootTime now) const {
  return ahead_ ? std::optional(micros_of(now) + *ahead_) : std::nullopt;
}

void Node::learn_time(std::int64_t micros, sys::BootTime now) {
  ahead_ = micros - micros_of(now);
}

}  // namespace tenure::backends::redlock
