#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/snapshot.hpp"
#include "server/raft/raft_store.hpp"

namespace tenure::test {

/// Raft group of stores in one thread with virtual time: a test advances the time, messages take 1
/// ms and disk writes another 1 ms. Crashes lose what was not durable.
///
///     RaftGroup group(3);
///     auto& leader = group.elect();
///     const auto decided = group.propose(leader, core::Tick{});
///     group.crash(leader.id());
class RaftGroup {
 public:
  using Time = server::raft::Time;
  using MemberId = server::raft::MemberId;
  using Index = server::raft::Index;

  /// What survives a crash.
  struct DurableState {
    server::raft::Term term{};
    MemberId voted_for{};
    std::optional<server::raft::Snapshot> snapshot;
    Index first{1};
    std::vector<server::raft::Entry> entries;
  };

  class Machine;

  /// Members 1 to `initial_members`, and as many more that wait to be added.
  explicit RaftGroup(std::size_t initial_members, std::size_t others = 0,
                     server::raft::RaftStoreOptions options = {});
  ~RaftGroup();
  RaftGroup(const RaftGroup&) = delete;
  RaftGroup& operator=(const RaftGroup&) = delete;

  [[nodiscard]] static server::raft::Member founder(std::uint64_t id);
  [[nodiscard]] static server::AddMember addition(std::uint64_t id);

  [[nodiscard]] Machine& at(std::uint64_t id) { return *machines_.at(id - 1); }
  [[nodiscard]] Time now() const noexcept { return now_; }

  void pass(std::chrono::milliseconds time);
  /// The clock moves on while the caller is in the middle of something.
  void jump(std::chrono::milliseconds time) { now_ += time; }
  /// Lets time pass until it is true; false if that takes longer than a minute.
  template <class Question>
  [[nodiscard]] bool eventually(Question question) {
    for (int i = 0; i < 60'000 && !question(); ++i) {
      pass(std::chrono::milliseconds(1));
    }
    return question();
  }
  /// Lets time pass until one member leads and is ready. REQUIRES: that a majority can talk.
  Machine& elect();
  /// The one that is ready, and not cut off.
  [[nodiscard]] Machine* leader();

  void crash(std::uint64_t id);
  void boot(std::uint64_t id);
  /// Nothing comes from it or gets to it until heal().
  void cut_off(std::uint64_t id) { cut_off_.insert(MemberId{id}); }
  void heal() { cut_off_.clear(); }

  /// Proposes, and lets time pass until it is decided.
  Result<server::Decided> propose(Machine& machine, core::Command command);
  /// Linearizable read of the encoded state.
  Result<std::string> read(Machine& machine);
  Result<void> change(Machine& machine, server::MemberChange change);
  Result<void> transfer(Machine& machine, std::uint64_t to);
  Result<std::uint64_t> take_snapshot(Machine& machine);

  std::size_t snapshots_sent = 0;
  std::chrono::milliseconds disk_delay{1};

 private:
  friend class Machine;
  struct InFlightMessage {
    MemberId from;
    MemberId peer;
    server::raft::Message message;
    Time due;
  };

  void deliver_due();

  Time now_{std::chrono::seconds(1000)};
  std::vector<std::unique_ptr<Machine>> machines_;
  std::deque<InFlightMessage> in_flight_;
  std::set<MemberId> cut_off_;
};

/// One member, with its disk and its network.
class RaftGroup::Machine final : public server::raft::Environment {
 public:
  Machine(RaftGroup& group, server::raft::RaftStoreOptions options)
      : group_(group), options_(options) {}

  void boot();
  void crash();
  void work();
  /// From the next boot on. REQUIRES: is not up.
  void set_versions(server::raft::Versions versions) { options_.versions = versions; }
  [[nodiscard]] bool is_up() const { return store_ != nullptr; }
  [[nodiscard]] MemberId id() const { return options_.id; }
  [[nodiscard]] server::raft::RaftStore& store() { return *store_; }
  [[nodiscard]] bool leads() const { return is_up() && store_->is_ready(); }
  [[nodiscard]] const core::State& state() const { return store_->state(); }
  [[nodiscard]] std::string state_bytes() const { return core::encode(store_->state()); }
  void propose(core::Command command, server::Store::Decision decided);
  [[nodiscard]] DurableState& durable() { return durable_; }

  server::raft::Space space{.left = 1 << 20, .is_next_ready = true};
  bool is_disk_stuck = false;           ///< Nothing becomes durable.
  bool is_snapshot_unreadable = false;  ///< The one on disk; the next one can be read.
  std::vector<std::string> reports;
  std::vector<server::raft::Member> known;  ///< Members of the last set_members().
  std::string failure;                      ///< Error of fatal(); empty: none.
  /// Called once when the store asks for the disk, which it does in the middle of a drain.
  mutable std::function<void()> when_asked_for_disk;

  void save_vote(server::raft::Term term, MemberId voted_for) override;
  void append(Index first, const std::vector<server::raft::Entry>& entries) override;
  void install(const server::raft::Snapshot& snapshot) override;
  core::StateMachine restore(const server::raft::Snapshot& snapshot,
                             core::StateMachine before) override;
  void cut(Index last) override;
  void compact(server::raft::CompactionPlan plan) override;
  [[nodiscard]] server::raft::DiskState disk() const override;
  void send(MemberId peer, server::raft::Message message) override;
  void send_snapshot(MemberId peer, server::raft::Term term) override;
  [[nodiscard]] std::optional<server::raft::Versions> versions_of(MemberId peer) const override;
  void set_members(const std::vector<server::raft::Member>& members) override { known = members; }
  [[nodiscard]] Time local_time() override { return group_.now_; }
  void drain_soon() override { is_drain_wanted_ = true; }
  void report(log::Level level, std::string_view event, log::Fields fields) override;
  void fatal(const std::string& why) override { failure = why; }

 private:
  struct Write {
    std::optional<server::raft::Snapshot> install;
    Index first{};
    std::vector<server::raft::Entry> entries;
    Time due;
  };

  void persist(const Write& write);

  RaftGroup& group_;
  server::raft::RaftStoreOptions options_;
  DurableState durable_;
  std::deque<Write> writes_;
  std::optional<server::raft::CompactionPlan> plan_;
  bool is_drain_wanted_ = false;
  bool is_read_error_due_ = false;
  std::unique_ptr<server::raft::RaftStore> store_;
};

}  // namespace tenure::test
