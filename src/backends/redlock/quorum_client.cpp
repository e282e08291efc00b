#include "backends/redlock/quorum_client.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

namespace tenure::backends::redlock {

using Clock = net::TimerQueue::Clock;

void QuorumClient::call(Call spec, OnDecided on_decided) {
  const auto call = std::make_shared<PendingCall>(PendingCall{.spec = std::move(spec),
                                                              .on_decided = std::move(on_decided),
                                                              .count = VoteTally(voters_.size()),
                                                              .end = {}});
  for (std::size_t server = 0; server < voters_.size(); ++server) {
    if (!send(call, server)) {
      call->count.cast(server, Verdict::failed);
    }
  }
  flush_soon();
  call->is_sent = true;
  complete_if_decided(*call);
  if (call->on_decided) {
    call->end = Clock::now() + call->spec.timeout;
    pending_.push_back(call);
    expire_calls_at(call->end);
  }
}

/// False: no reply can be expected.
bool QuorumClient::send(const std::shared_ptr<PendingCall>& call, std::size_t server) {
  auto& voter = *voters_[server];
  const bool is_responsive = voter.is_responsive();
  const bool is_for_all = call->spec.recipients == Call::Recipients::all;
  if (!is_responsive && !is_for_all) {
    return false;
  }
  auto command = call->spec.command(server);
  if (!command) {
    return false;
  }
  const bool is_run = voter.run(
      {.encoded = *std::move(command),
       .on_reply = [this, call, server](const auto& answer) { replied(*call, server, answer); },
       .retry = is_for_all ? redis::Command::Retry::always : redis::Command::Retry::until_timeout});
  return is_responsive && is_run;
}

void QuorumClient::send_to(std::size_t server, std::string command) {
  if (voters_[server]->is_responsive() &&
      voters_[server]->run({.encoded = std::move(command), .on_reply = [](const auto&) {}})) {
    flush_soon();
  }
}

void QuorumClient::replied(PendingCall& call, std::size_t server, const Result<Response>& answer) {
  call.count.cast(server, call.spec.classify(server, answer));
  complete_if_decided(call);
}

void QuorumClient::complete_if_decided(PendingCall& call) {
  const auto& count = call.count;
  if (!call.is_sent || !call.on_decided) {
    return;
  }
  using enum Call::Until;
  const auto until = call.spec.until;
  const bool is_decided = count.open() == 0 || (until != all && count.is_won()) ||
                          (until == cannot_win && count.cannot_win()) ||
                          (until == refused && count.is_refused());
  if (is_decided) {
    std::exchange(call.on_decided, nullptr)(count);
  }
}

void QuorumClient::expire_calls_at(Clock::time_point when) {
  if (next_expiry_ && *next_expiry_ <= when) {
    return;
  }
  next_expiry_ = when;
  timers_.call_at(when, [this, when] {
    if (next_expiry_ == when) {
      next_expiry_.reset();
      expire_calls();
    }
  });
}

void QuorumClient::expire_calls() {
  std::erase_if(pending_, [](const auto& call) { return !call->on_decided; });
  const auto now = Clock::now();
  std::vector<std::shared_ptr<PendingCall>> expired;
  for (const auto& call : pending_) {
    if (call->end > now) {
      expire_calls_at(call->end);
    } else {
      expired.push_back(call);
    }
  }
  for (const auto& call : expired) {
    for (std::size_t server = 0; server < voters_.size(); ++server) {
      if (call->count.of(server) == Verdict::open) {
        voters_[server]->mark_unresponsive();
        call->count.cast(server, Verdict::failed);
      }
    }
    complete_if_decided(*call);
  }
}

void QuorumClient::flush_soon() {
  if (!std::exchange(is_flush_due_, true)) {
    boost::asio::post(loop_, [this] { flush(); });
  }
}

void QuorumClient::flush() {
  is_flush_due_ = false;
  for (const auto& voter : voters_) {
    voter->flush();
  }
}

}  // namespace tenure::backends::redlock
