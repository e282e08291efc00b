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

/// Quorum call: sends a command to all servers concurrently and completes as soon as the votes
/// decide the result, so that no call waits for the slowest server. A server that does not reply in
/// time is skipped by the following calls until it replies again. Runs on the loop's thread.
class QuorumClient {
 public:
  using Voters = std::vector<std::unique_ptr<Voter>>;
  using Response = redis::Command::Response;

  /// Specification of a call.
  struct Call {
    /// Encoded command for a server; absent: skip it.
    std::function<std::optional<std::string>(std::size_t server)> command;
    /// Meaning of a reply. Also called for replies that arrive after the decision.
    std::function<Verdict(std::size_t server, const Result<Response>&)> classify;
    /// Time after which a missing reply counts as Verdict::failed.
    std::chrono::milliseconds timeout{};
    /// Condition that completes a call, besides a win. cannot_win: a win has become impossible;
    /// refused: refusals alone make it impossible; all: every server has replied or failed (also
    /// after a win).
    enum class Until : std::uint8_t { cannot_win, refused, all } until = Until::cannot_win;
    /// Servers that receive the command. responsive: those that can reply now; all: also the
    /// others, as soon as they are connected, without waiting for their replies.
    enum class Recipients : std::uint8_t { responsive, all } recipients = Recipients::responsive;
  };
  /// Receives the tally of a completed call.
  using OnDecided = std::move_only_function<void(const VoteTally&)>;

  /// The voters may be added later.
  QuorumClient(boost::asio::io_context& loop, const Voters& voters, net::TimerQueue& timers)
      : loop_(loop), voters_(voters), timers_(timers) {}

  /// Starts a call. `on_decided` is called once, possibly before this returns.
  void call(Call spec, OnDecided on_decided);
  /// Sends a command to one server and ignores its reply.
  void send_to(std::size_t server, std::string command);
  /// Schedules flush() at the end of the current turn of the loop, so that commands are sent
  /// together.
  void flush_soon();
  /// Sends the queued commands.
  void flush();

 private:
  /// Call in progress.
  struct PendingCall {
    /// Specification of the call.
    Call spec;
    /// Callback of the caller; null: the call is complete.
    OnDecided on_decided;
    /// Verdicts so far.
    VoteTally count;
    /// Deadline of the call.
    net::TimerQueue::Clock::time_point end;
    /// The command has been sent to all servers. Before that no decision is reported.
    bool is_sent = false;
  };

  /// Sends the command to one server; false if no reply can be expected.
  [[nodiscard]] bool send(const std::shared_ptr<PendingCall>& call, std::size_t server);
  /// Counts the reply of a server.
  void replied(PendingCall& call, std::size_t server, const Result<Response>& answer);
  /// Completes a call whose result is decided.
  void complete_if_decided(PendingCall& call);
  /// Schedules expire_calls(), unless it is scheduled earlier.
  void expire_calls_at(net::TimerQueue::Clock::time_point when);
  /// Ends the calls whose deadline has passed, and marks the servers without a reply as
  /// unresponsive.
  void expire_calls();

  /// Event loop that runs all handlers.
  boost::asio::io_context& loop_;
  /// Servers that vote.
  const Voters& voters_;
  /// Timers of the backend.
  net::TimerQueue& timers_;
  /// Calls in progress; completed ones are removed by expire_calls().
  std::vector<std::shared_ptr<PendingCall>> pending_;
  /// Time of the next expire_calls(), if it is scheduled.
  std::optional<net::TimerQueue::Clock::time_point> next_expiry_;
  /// flush() is scheduled.
  bool is_flush_due_ = false;
};

}  // namespace tenure::backends::redlock
