#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/locks_backend.hpp"
#include "backends/net/loop_backend.hpp"
#include "backends/redlock/locks.hpp"
#include "backends/redlock/quorum_client.hpp"
#include "backends/redlock/url.hpp"
#include "backends/redlock/voter.hpp"
#include "net/timer_queue.hpp"

namespace tenure::backends::redlock {

/// Backend for Redlock: a lock is held by the client that has the votes of a majority of
/// independent Redis servers. Uses two connections to each server, one for commands and one for
/// notifications.
///
/// Thread safe: every operation is posted to the event loop, which owns all parts below.
class RedlockBackend final : public LocksBackend<Locks, LoopBackend> {
 public:
  /// Connects; returns when a majority is ready, or with the reason of the failure after `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<RedlockBackend>> open(
      Deployment deployment, std::chrono::milliseconds timeout);
  /// `timeout`: limit for operations without a responsive quorum.
  RedlockBackend(Deployment deployment, std::chrono::milliseconds timeout);
  RedlockBackend(const RedlockBackend&) = delete;
  RedlockBackend& operator=(const RedlockBackend&) = delete;
  ~RedlockBackend() override;

  /// Problems of the servers and of their number that do not prevent their use. REQUIRES: open()
  /// has returned.
  [[nodiscard]] std::vector<std::string> warnings();

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  void start(Listener& listener) override;

 private:
  [[nodiscard]] Locks& locks() noexcept override { return locks_; }
  void send_all() override { quorum_.flush(); }
  /// Creates the connections to all servers.
  void make_voters();
  /// A server became ready or stopped being so: updates the state of open() and the listener.
  void voter_changed();
  /// Result of open(); absent: not decided yet.
  [[nodiscard]] std::optional<Result<void>> opening_result();
  /// Error if two URLs lead to the same server, which would have two votes.
  [[nodiscard]] std::optional<Error> find_duplicate_server() const;
  /// Wakes the destructor when all responsive servers have replied.
  void signal_if_drained();

  /// Servers and options of the URL.
  const Deployment deployment_;
  /// Limit for operations without a responsive quorum.
  const std::chrono::milliseconds timeout_;
  /// Receiver of events; null before start() and while ending.
  Listener* listener_ = nullptr;
  /// State of the connection as last reported to the listener.
  bool is_reported_connected_ = false;
  /// Result of open(); absent: not decided yet.
  std::optional<Result<void>> open_result_;
  /// A majority is ready, and the other servers have had their grace period.
  bool is_grace_over_ = false;
  /// Signalled with the result of open().
  sys::WaitSlot opened_;
  /// Signalled when the destructor may continue.
  sys::WaitSlot drained_;
  /// The destructor has begun.
  bool is_ending_ = false;
  /// Collected warnings, without duplicates.
  std::vector<std::string> warnings_;

  // Used on the loop's thread only:
  //
  /// Timer of the grace period, and of the destructor.
  boost::asio::steady_timer timer_;
  /// Timers of calls and retries.
  net::TimerQueue timers_;
  /// Voting servers.
  QuorumClient::Voters voters_;
  /// Quorum calls to them.
  QuorumClient quorum_;
  /// Leases, holds and pending acquires.
  Locks locks_;
};

}  // namespace tenure::backends::redlock
