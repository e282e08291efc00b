#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "backends/redis/pipeline.hpp"
#include "backends/redlock/vote_tally.hpp"
#include "backends/redlock/voter.hpp"
#include "net/timer_queue.hpp"

namespace tenure::backends::redlock {

/// Asks all servers the same, at the same time, and tells as soon as it is on_decided; nobody waits
/// for the slowest. All on the loop's thread.
class QuorumClient {
 public:
  using Voters = std::vector<std::unique_ptr<Voter>>;
  using Response = redis::Command::Response;

  struct Call {
    /// What this server is asked; nothing: it is passed expired.
    std::function<std::optional<std::string>(std::size_t server)> command;
    /// What an answer means. Also called for those that come after the decision.
    std::function<Verdict(std::size_t server, const Result<Response>&)> classify;
    std::chrono::milliseconds timeout{};
    /// `refused`: or not until it is refused for sure; `all`: not until nobody is left to answer.
    enum class Until : std::uint8_t { cannot_win, refused, all } until = Until::cannot_win;
    /// `all`: also those that do not answer at the moment, when they do; nobody waits for
    /// them.
    enum class Recipients : std::uint8_t { responsive, all } recipients = Recipients::responsive;
  };
  using OnDecided = std::move_only_function<void(const VoteTally&)>;

  /// The voters may still be made.
  QuorumClient(boost::asio::io_context& loop, const Voters& voters, net::TimerQueue& timers)
      : loop_(loop), voters_(voters), timers_(timers) {}

  /// `on_decided` is called once, perhaps before this returns.
  void call(Call spec, OnDecided on_decided);
  /// One server, of which nobody awaits an answer.
  void send_to(std::size_t server, std::string command);
  /// What was asked leaves at the end of this turn of the loop.
  void flush_soon();
  void flush();

 private:
  struct PendingCall {
    Call spec;
    OnDecided on_decided;
    VoteTally count;
    net::TimerQueue::Clock::time_point end;
    bool is_sent = false;  ///< All of them.
  };

  [[nodiscard]] bool send(const std::shared_ptr<PendingCall>& call, std::size_t server);
  void replied(PendingCall& call, std::size_t server, const Result<Response>& answer);
  void complete_if_decided(PendingCall& call);
  void expire_calls_at(net::TimerQueue::Clock::time_point when);
  void expire_calls();

  boost::asio::io_context& loop_;
  const Voters& voters_;
  net::TimerQueue& timers_;
  std::vector<std::shared_ptr<PendingCall>> pending_;  ///< Not on_decided; and some that are.
  std::optional<net::TimerQueue::Clock::time_point> next_expiry_;
  bool is_flush_due_ = false;
};

}  // namespace tenure::backends::redlock
