#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/net/loop_backend.hpp"
#include "backends/redlock/locks.hpp"
#include "backends/redlock/quorum_client.hpp"
#include "backends/redlock/url.hpp"
#include "backends/redlock/voter.hpp"
#include "net/timer_queue.hpp"

namespace tenure::backends::redlock {

/// Locks by the vote of several Redis servers that know nothing of each other: held is what a
/// majority gave. Two connections to each: one that asks and one that listens.
class RedlockBackend final : public LocksOnLoop<Locks> {
 public:
  /// Returns when a majority answers; else says why it did not within `timeout`.
  [[nodiscard]] static Result<std::unique_ptr<RedlockBackend>> open(
      Deployment deployment, std::chrono::milliseconds timeout);
  RedlockBackend(Deployment deployment, std::chrono::milliseconds timeout);
  ~RedlockBackend() override;

  /// What people should know of these servers, though they serve. After open().
  [[nodiscard]] std::vector<std::string> warnings();

  [[nodiscard]] Capabilities capabilities() const noexcept override;
  [[nodiscard]] Limits limits() const noexcept override { return {}; }
  void start(Listener& listener) override;

 private:
  [[nodiscard]] Locks& locks() noexcept override { return locks_; }
  void send_all() override { quorum_.flush(); }
  void make_voters();
  void voter_changed();
  [[nodiscard]] std::optional<Result<void>> opening_result();
  [[nodiscard]] std::optional<Error> find_duplicate_server() const;
  void signal_if_drained();

  const Deployment deployment_;
  const std::chrono::milliseconds timeout_;
  Listener* listener_ = nullptr;
  bool is_reported_connected_ = false;
  std::optional<Result<void>> open_result_;  ///< What became of connecting.
  bool is_grace_over_ = false;  ///< A majority is there; the others have had their time, too.
  sys::WaitSlot opened_;
  sys::WaitSlot drained_;
  bool is_ending_ = false;
  std::vector<std::string> warnings_;

  // On the loop:
  boost::asio::steady_timer timer_;
  net::TimerQueue timers_;
  QuorumClient::Voters voters_;
  QuorumClient quorum_;
  Locks locks_;
};

}  // namespace tenure::backends::redlock
