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
#include "server/store/store.hpp"

namespace tenure::test {

/// Clock of the store: advanced by the test, or real time.
enum class Time : std::uint8_t { manual, real };

/// A store for tests of what stands in front of it: the real state machine on a thread of its own,
/// without a log; every command is one entry and commits at once. It leads from the beginning.
///
///     MemoryStore store;
///     Gateway gateway(store);           // calls store.listen(...)
///     store.start();
///     store.ask(core::GrantLease{...});
///     store.advance(30s);               // and everything expires
///
/// Thread safe. When ask(), look(), advance() and similar calls return, the listeners have been
/// called.
class MemoryStore final : public server::Store {
 public:
  struct Options {
    core::Limits limits{};
    Time time = Time::manual;
    server::Identity identity{.cluster = 0xC0FFEE, .member = 1};
    bool leads = true;  ///< From the beginning.
    /// When cluster time began: the same for all stores of a group.
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
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
  void read(OnRead on_read) override;
  void peek(OnRead on_read) override;
  void take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) override;
  void change_members(server::MemberChange change,
                      std::move_only_function<void(Result<void>)> done) override;
  void transfer_leadership(std::uint64_t to,
                           std::move_only_function<void(Result<void>)> done) override;
  [[nodiscard]] const core::State& state() const override { return machine_.state(); }
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
  /// How many are kept.
  [[nodiscard]] std::size_t kept();
  void resume();
  /// Begins or ceases to lead: a follower answers read() and propose() with `unavailable`, and so
  /// ends what was kept. It knows no leader.
  void lead(bool leads);
  /// Ceases to lead, if it did, and knows that this one leads.
  void follow(std::uint64_t leader, std::string address);
  /// Whatever is applied here from now on is applied there too, in the same order. REQUIRES: before
  /// start(); they live as long.
  void replicate_to(std::vector<MemoryStore*> others) { others_ = std::move(others); }
  /// Sets the members of the group; change_members() modifies them.
  void set_members(std::vector<server::MemberStatus> members);
  /// What transfer_leadership() does; REQUIRES: before start(). By default this member then follows
  /// the other.
  using Transfer = std::function<void(std::uint64_t to)>;
  void when_transferred(Transfer transfer) { transfer_ = std::move(transfer); }
  /// Replaces the state by that of the other store, as a snapshot of the leader does.
  void restore_from(MemoryStore& leader);
  /// Makes the next `reads` calls of read() and `peeks` of peek() `unavailable` although the store
  /// is the leader, as if no majority confirmed the leadership in time.
  void fail_reads(std::size_t reads, std::size_t peeks = 0);
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
  void apply_foreign(const core::Command& command, core::ClusterTime time);
  void tell(const core::Applied& applied, std::chrono::steady_clock::duration took);
  void change_role(bool leads, std::uint64_t leader, std::string address);
  [[nodiscard]] Result<void> change(const server::MemberChange& change);
  void arm_expiry();
  [[nodiscard]] core::ClusterTime now() const;
  [[nodiscard]] server::View view() const;

  const Options options_;
  std::vector<server::Listener*> listeners_;
  std::vector<MemoryStore*> others_;
  Transfer transfer_;

  // Of the store's thread only.
  core::StateMachine machine_;
  server::LogPosition log_;
  std::vector<server::MemberStatus> members_;
  core::ClusterTime passed_{};  ///< By advance().
  std::deque<Proposal> kept_;
  std::size_t failing_reads_ = 0;
  std::size_t failing_peeks_ = 0;
  bool is_paused_ = false;

  std::atomic<bool> is_stopped_ = false;
  boost::asio::io_context loop_{1};
  boost::asio::steady_timer expiry_{loop_};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace tenure::test
