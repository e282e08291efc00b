#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/state_machine.hpp"
#include "server/store.hpp"

namespace tenure::test {

/// Whether leases expire because the test says so, or because it is late.
enum class Time : std::uint8_t { stands_still, flows };

/// A store for tests of what stands in front of it: the real state machine on a thread of its own,
/// without a log; every command is one entry and commits at once. It leads from the beginning.
///
///     MemoryStore store;
///     Gateway gateway(store);           // calls store.listen(...)
///     store.start();
///     store.ask(core::GrantLease{...});
///     store.advance(30s);               // and everything expires
///
/// Thread safe. What ask(), look(), advance() and the like return has happened, listeners included.
class MemoryStore final : public server::Store {
 public:
  struct Options {
    core::Limits limits{};
    Time time = Time::stands_still;
    server::Identity identity{.cluster = 0xC0FFEE, .member = 1};
  };

  MemoryStore() : MemoryStore(Options{}) {}
  explicit MemoryStore(const Options& options);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  void start();
  /// Everything that is not decided is `unavailable`, and so is all that comes later. Idempotent.
  void stop();

  void propose(core::Command command, Decision decided) override;
  void read(Look look) override;
  void peek(Look look) override;
  void take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) override;
  void change_members(server::MemberChange change,
                      std::move_only_function<void(Result<void>)> done) override;
  void transfer_leadership(std::uint64_t to,
                           std::move_only_function<void(Result<void>)> done) override;
  [[nodiscard]] server::Identity identity() const override { return options_.identity; }
  [[nodiscard]] boost::asio::io_context& loop() override { return loop_; }
  void listen(server::Listener& listener) override { listeners_.push_back(&listener); }

  // What a test does with it. REQUIRES: start() was called, and not on the store's thread.

  /// Proposes and waits for the decision.
  Result<server::Decided> ask(core::Command command);
  /// Runs on the store's thread and waits for it.
  void look(const std::function<void(const server::View&)>& looker);
  /// Lets cluster time pass and applies a Tick.
  void advance(core::ClusterTime by);
  /// From now on proposals are kept and not decided, until resume().
  void pause();
  void resume();
  /// Begins or ceases to lead: a follower answers read() and propose() with `unavailable`.
  void lead(bool leads);
  /// With a full disk proposals are `resource_exhausted`.
  void set_space(bool has_space);

 private:
  struct Proposal {
    core::Command command;
    Decision decided;
    std::chrono::steady_clock::time_point arrived;
  };

  void on_loop(std::move_only_function<void()> task);
  void on_loop_and_wait(std::move_only_function<void()> task);
  void take(Proposal proposal);
  void apply(Proposal proposal);
  void arm_expiry();
  [[nodiscard]] core::ClusterTime now() const;
  [[nodiscard]] server::View view() const;

  const Options options_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::vector<server::Listener*> listeners_;

  // Of the store's thread only.
  core::StateMachine machine_;
  server::LogPosition log_;
  core::ClusterTime passed_{};  ///< By advance().
  std::deque<Proposal> kept_;
  bool is_paused_ = false;

  std::atomic<bool> is_stopped_ = false;
  boost::asio::io_context loop_{1};
  boost::asio::steady_timer expiry_{loop_};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace tenure::test
