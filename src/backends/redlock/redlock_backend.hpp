#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/net/loop_backend.hpp"
#include "backends/redlock/ballots.hpp"
#include "backends/redlock/locks.hpp"
#include "backends/redlock/node.hpp"
#include "backends/redlock/servers.hpp"
#include "net/timer_queue.hpp"

namespace tenure::backends::redlock {

/// Locks by the vote of several Redis servers that know nothing of each other: held is what a
/// majority gave. Two connections to each: one that asks and one that listens.
class RedlockBackend final : public LocksOnLoop<Locks> {
 public:
  /// Returns when a majority answers; else says why it did not within `patience`.
  [[nodiscard]] static Result<std::unique_ptr<RedlockBackend>> open(
      Servers servers, std::chrono::milliseconds patience);
  RedlockBackend(Servers servers, std::chrono::milliseconds patience);
  ~RedlockBackend() override;

  /// What people should know of these servers, though they serve. After open().
  [[nodiscard]] std::vector<std::string> doubts();

  [[nodiscard]] Promises promises() const noexcept override;
  [[nodiscard]] Bounds bounds() const noexcept override { return {}; }
  void start(Listener& listener) override;

 private:
  [[nodiscard]] Locks& locks() noexcept override { return locks_; }
  void send_all() override { ballots_.flush(); }
  void make_nodes();
  void node_changed();
  [[nodiscard]] std::optional<Result<void>> judge_opening();
  [[nodiscard]] std::optional<Error> find_twins() const;
  void end_if_idle();

  const Servers servers_;
  const std::chrono::milliseconds patience_;
  Listener* listener_ = nullptr;
  bool is_told_connected_ = false;
  std::optional<Result<void>> first_;  ///< What became of connecting.
  bool is_grace_over_ = false;  ///< A majority is there; the others have had their time, too.
  sys::WaitSlot opened_;
  sys::WaitSlot ended_;
  bool is_ending_ = false;
  std::vector<std::string> doubts_;

  // On the loop:
  boost::asio::steady_timer timer_;
  net::TimerQueue timers_;
  Ballots::Nodes nodes_;
  Ballots ballots_;
  Locks locks_;
};

}  // namespace tenure::backends::redlock
