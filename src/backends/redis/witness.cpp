#include "backends/redis/witness.hpp"

#include <algorithm>
#include <utility>

namespace tenure::backends::redis {
namespace {

/// How long replicas have; also not longer than half of what an answer may take.
constexpr std::chrono::milliseconds bound_max{1000};
/// Commands before one WAIT.
constexpr std::size_t batch_max = 1024;

std::string wait_command(std::uint32_t replicas, std::chrono::milliseconds bound) {
  const auto count = std::to_string(replicas);
  const auto time = std::to_string(bound.count());
  return command_of({"WAIT", count, time});
}

}  // namespace

/// What one WAIT is for.
struct Witness::Batch {
  struct Part {
    Case asked{};
    bool is_told = false;          ///< How it ended.
    std::optional<Reply> reply{};  ///< On the connection that the WAIT is on.
  };
  std::uint32_t replicas = 0;
  std::vector<Part> parts{};
};

Witness::Witness(boost::asio::io_context& loop, const Address& address, Calls calls)
    : calls_(std::move(calls)), bound_(std::min(bound_max, address.timeout / 2)) {
  Pipeline::Calls own{.ready = [] {},
                      .lost = [](const Error&) {},
                      .idle = [] {},
                      .doubtful = [](const std::string&) {}};
  if (calls_.astray) {
    own.astray = [this](Errand errand, std::string_view words) {
      astray_ = std::string(words);
      errand.tell(fail(Errc::unavailable, std::string(words)));
      astray_.reset();
    };
  }
  pipeline_ = std::make_shared<Pipeline>(loop, address, std::move(own));
}

void Witness::run(Errand errand, std::uint32_t replicas) {
  if (is_stopped_) {
    errand.tell(fail(Errc::unavailable, "the client ends"));
    return;
  }
  if (!std::exchange(is_started_, true)) {
    pipeline_->start();
  }
  gathering_.push_back({.errand = std::move(errand), .replicas = replicas});
  begin();
}

void Witness::begin() {
  if (batch_ || gathering_.empty() || is_stopped_) {
    return;
  }
  const auto batch = std::make_shared<Batch>();
  batch->replicas = gathering_.front().replicas;
  while (!gathering_.empty() && gathering_.front().replicas == batch->replicas &&
         batch->parts.size() < batch_max) {
    batch->parts.push_back({.asked = std::move(gathering_.front())});
    gathering_.pop_front();
  }
  batch_ = batch;
  for (std::size_t which = 0; which < batch->parts.size(); ++which) {
    const auto& errand = batch->parts[which].asked.errand;
    pipeline_->run(
        {.command = errand.command,
         .answered = [this, batch, which](const auto& answer) { said(*batch, which, answer); },
         .loss = errand.loss});
  }
  pipeline_->run({.command = wait_command(batch->replicas, bound_),
                  .answered = [this, batch](const auto& answer) { waited(batch, answer); },
                  .loss = Errand::Loss::fail});
  pipeline_->flush();
}

void Witness::said(Batch& batch, std::size_t which, const Result<Errand::Answer>& answer) {
  auto& part = batch.parts[which];
  if (part.is_told || is_stopped_) {
    return;
  }
  if (answer) {
    // Without elements: what has some is not for here.
    part.reply = Reply{
        .kind = answer->reply.kind, .number = answer->reply.number, .text = answer->reply.text};
    return;
  }
  part.is_told = true;
  if (astray_) {
    calls_.astray(std::move(part.asked.errand), part.asked.replicas, *astray_);
  } else {
    part.asked.errand.tell(std::unexpected(answer.error()));
  }
}

void Witness::waited(const std::shared_ptr<Batch>& batch, const Result<Errand::Answer>& answer) {
  if (is_stopped_) {
    return;
  }
  batch_.reset();
  const bool is_whole = answer && !answer->is_retry;
  const auto count = answer ? answer->reply.number : 0;
  for (auto& part : batch->parts) {
    if (std::exchange(part.is_told, true)) {
      continue;
    }
    auto& errand = part.asked.errand;
    if (!answer) {
      errand.tell(std::unexpected(answer.error()));
    } else if (!is_whole || !part.reply) {
      // Said on another connection than the WAIT, which then knows nothing of it: both again.
      gathering_.push_back(std::move(part.asked));
    } else if (count >= static_cast<std::int64_t>(batch->replicas)) {
      errand.tell(Errand::Answer{.reply = *part.reply});
    } else {
      errand.tell(fail(Errc::unavailable, pipeline_->where() + ": " + std::to_string(count) +
                                              " of " + std::to_string(batch->replicas) +
                                              " replicas have it after " +
                                              std::to_string(bound_.count()) + " ms"));
    }
  }
  begin();
  if (is_idle()) {
    calls_.idle();
  }
}

std::vector<Witness::Case> Witness::retire() {
  is_stopped_ = true;
  (void)pipeline_->retire();
  std::vector<Case> rest;
  if (const auto batch = std::exchange(batch_, nullptr)) {
    for (auto& part : batch->parts) {
      if (!part.is_told) {
        rest.push_back(std::move(part.asked));
      }
    }
  }
  std::ranges::move(gathering_, std::back_inserter(rest));
  gathering_.clear();
  return rest;
}

void Witness::stop(const Error& why) {
  for (auto& rest : retire()) {
    rest.errand.tell(std::unexpected(why));
  }
}

}  // namespace tenure::backends::redis
