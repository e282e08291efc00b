#include "backends/redis/replication_barrier.hpp"

#include <algorithm>
#include <utility>

namespace tenure::backends::redis {
namespace {

/// Longest time that replicas have; also at most half of the request timeout, so that the caller
/// receives the reason and not a timeout.
constexpr std::chrono::milliseconds wait_timeout_max{1000};
/// Maximum number of commands that share one WAIT.
constexpr std::size_t batch_max = 1024;

/// Encoded WAIT.
std::string wait_command(std::uint32_t replicas, std::chrono::milliseconds bound) {
  const auto count = std::to_string(replicas);
  const auto time = std::to_string(bound.count());
  return encode_command({"WAIT", count, time});
}

}  // namespace

struct ReplicationBarrier::Batch {
  /// One command of the batch.
  struct Part {
    Command command{};
    /// Its callback has been called.
    bool is_completed = false;
    /// Reply on the connection of the WAIT, until the WAIT is answered.
    std::optional<Reply> reply{};
  };
  /// Number of replicas that all commands of the batch need.
  std::uint32_t replicas = 0;
  /// Commands of the batch, in order.
  std::vector<Part> parts{};
};

ReplicationBarrier::ReplicationBarrier(boost::asio::io_context& loop, const ServerOptions& server,
                                       Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      wait_timeout_(std::min(wait_timeout_max, server.timeout / 2)) {
  Pipeline::Callbacks own{.ready = [] {},
                          .disconnected = [](const Error&) {},
                          .idle = [] {},
                          .warning = [](const std::string&) {}};
  if (callbacks_.redirected) {
    // redirect_error_ lets replied() distinguish a redirect from a failure.
    own.redirected = [this](Command command, std::string_view words) {
      redirect_error_ = std::string(words);
      command.complete(fail(Errc::unavailable, std::string(words)));
      redirect_error_.reset();
    };
  }
  pipeline_ = std::make_shared<Pipeline>(loop, server, std::move(own));
}

void ReplicationBarrier::run(Command command) {
  if (is_stopped_) {
    command.complete(fail(Errc::unavailable, "the client is closing"));
    return;
  }
  if (!std::exchange(is_started_, true)) {
    pipeline_->start();
  }
  queued_.push_back(std::move(command));
  start_batch();
}

void ReplicationBarrier::start_batch() {
  if (batch_ || queued_.empty() || is_stopped_) {
    return;
  }
  const auto batch = std::make_shared<Batch>();
  batch->replicas = queued_.front().replicas;
  while (!queued_.empty() && queued_.front().replicas == batch->replicas &&
         batch->parts.size() < batch_max) {
    batch->parts.push_back({.command = std::move(queued_.front())});
    queued_.pop_front();
  }
  batch_ = batch;
  for (std::size_t which = 0; which < batch->parts.size(); ++which) {
    const auto& command = batch->parts[which].command;
    pipeline_->run(
        {.encoded = command.encoded,
         .on_reply = [this, batch, which](const auto& answer) { replied(*batch, which, answer); },
         .retry = command.retry});
  }
  pipeline_->run({.encoded = wait_command(batch->replicas, wait_timeout_),
                  .on_reply = [this, batch](const auto& answer) { wait_replied(batch, answer); },
                  .retry = Command::Retry::until_timeout});
  pipeline_->flush();
}

void ReplicationBarrier::replied(Batch& batch, std::size_t which,
                                 const Result<Command::Response>& answer) {
  auto& part = batch.parts[which];
  if (part.is_completed || is_stopped_) {
    return;
  }
  if (answer) {
    // Without elements: the scripts used here reply with a text or a number.
    part.reply = Reply{
        .kind = answer->reply.kind, .number = answer->reply.number, .text = answer->reply.text};
    return;
  }
  part.is_completed = true;
  if (redirect_error_) {
    callbacks_.redirected(std::move(part.command), *redirect_error_);
  } else {
    part.command.complete(std::unexpected(answer.error()));
  }
}

void ReplicationBarrier::wait_replied(const std::shared_ptr<Batch>& batch,
                                      const Result<Command::Response>& answer) {
  if (is_stopped_) {
    return;
  }
  batch_.reset();
  const bool is_whole = answer && !answer->is_retry;
  const auto count = answer ? answer->reply.number : 0;
  for (auto& part : batch->parts) {
    if (std::exchange(part.is_completed, true)) {
      continue;
    }
    auto& command = part.command;
    if (!answer) {
      command.complete(std::unexpected(answer.error()));
    } else if (!is_whole || !part.reply) {
      // The connection broke between the command and the WAIT, so the WAIT does not cover the
      // command. Both are repeated.
      queued_.push_back(std::move(command));
    } else if (count >= static_cast<std::int64_t>(batch->replicas)) {
      command.complete(Command::Response{.reply = *part.reply});
    } else {
      command.complete(fail(Errc::unavailable, pipeline_->where() + ": " + std::to_string(count) +
                                                   " of " + std::to_string(batch->replicas) +
                                                   " replicas confirmed the write after " +
                                                   std::to_string(wait_timeout_.count()) + " ms"));
    }
  }
  start_batch();
  if (is_idle()) {
    callbacks_.idle();
  }
}

std::vector<Command> ReplicationBarrier::retire() {
  is_stopped_ = true;
  (void)pipeline_->retire();
  std::vector<Command> rest;
  if (const auto batch = std::exchange(batch_, nullptr)) {
    for (auto& part : batch->parts) {
      if (!part.is_completed) {
        rest.push_back(std::move(part.command));
      }
    }
  }
  std::ranges::move(queued_, std::back_inserter(rest));
  queued_.clear();
  return rest;
}

void ReplicationBarrier::stop(const Error& why) {
  for (auto& command : retire()) {
    command.complete(std::unexpected(why));
  }
}

}  // namespace tenure::backends::redis
