#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/events/watch_hub.hpp"
#include "server/raft/environment.hpp"
#include "server/raft/raft_store.hpp"
#include "server/requests/waiter_registry.hpp"
#include "server/store/store.hpp"
#include "simulation/checker.hpp"
#include "simulation/disk.hpp"
#include "simulation/host_clock.hpp"
#include "simulation/network.hpp"
#include "simulation/protocol.hpp"

namespace tenure::simulation {

/// Simulated machine with one member: the production RaftStore on a simulated disk, network and
/// clock, and a model of server/rpc in front of it.
class Host final : public server::raft::Environment, public server::Listener {
 public:
  struct Context {
    World& world;
    Network& network;
    Checker& checker;
    Directory& directory;
  };

  Host(const Context& context, Endpoint endpoint, HostClock clock);

  [[nodiscard]] server::raft::MemberId id() const { return server::raft::MemberId{endpoint_ + 1}; }
  [[nodiscard]] Disk& disk() noexcept { return disk_; }
  [[nodiscard]] bool is_up() const noexcept { return serving_ != nullptr; }
  /// Whether it leads and is ready to answer.
  [[nodiscard]] bool leads() const;
  /// Whether its replica is in the role of leader.
  [[nodiscard]] bool believes_to_lead() const;
  [[nodiscard]] bool is_paused() const { return world_.now() < paused_until_; }
  [[nodiscard]] const server::raft::RaftStore& store() const;

  void boot();
  void crash();
  /// Suspends the process for `length`; queued events run afterwards.
  void pause(VirtualTime length);
  void jump(std::chrono::nanoseconds ahead) { clock_.jump(ahead); }
  void fill_disk(bool is_full);

  void receive(server::raft::MemberId sender, const server::raft::Message& message);
  void handle_request(const Request& request);

  // Operations of operators.
  using Done = std::function<void(const Result<void>&)>;
  void change_members(const server::MemberChange& change, Done done = nothing);
  /// 0: the store chooses the successor.
  void transfer_leadership(server::raft::MemberId to = {}, Done done = nothing);

  /// Cluster versions of its program. Every seventh boot prefers the oldest version, so that the
  /// cluster version changes in both directions during other faults.
  [[nodiscard]] server::raft::Versions versions() const;
  [[nodiscard]] std::size_t boots() const noexcept { return life_ / 2; }

 private:
  struct Stream {
    Request request;
    std::shared_ptr<server::Watch> watch;
    std::uint64_t sent = 0;
  };
  /// State that a crash destroys.
  struct Serving {
    server::WaiterRegistry waiters;
    server::WatchHub hub;
    std::map<Endpoint, std::shared_ptr<Stream>> streams;
    std::unique_ptr<server::raft::RaftStore> store;
  };

  // Environment
  void save_vote(server::raft::Term term, server::raft::MemberId voted_for) override;
  void append(server::raft::Index first, const std::vector<server::raft::Entry>& entries) override;
  void install(const server::raft::Snapshot& snapshot) override;
  [[nodiscard]] core::StateMachine restore(const server::raft::Snapshot& snapshot,
                                           core::StateMachine before) override;
  void cut(server::raft::Index last) override;
  void compact(server::raft::CompactionPlan plan) override;
  [[nodiscard]] server::raft::DiskState disk() const override;
  void send(server::raft::MemberId peer, server::raft::Message message) override;
  void send_snapshot(server::raft::MemberId peer, server::raft::Term term) override;
  [[nodiscard]] std::optional<server::raft::Versions> versions_of(
      server::raft::MemberId peer) const override;
  void set_members(const std::vector<server::raft::Member>& members) override;
  [[nodiscard]] server::raft::Time local_time() override { return time(); }
  void drain_soon() override;
  void report(log::Level level, std::string_view event, log::Fields fields) override;
  void fatal(const std::string& why) override;

  // Listener
  void applied(const core::Applied& what, const core::State& state) override;

  using Call = std::function<void(server::raft::RaftStore&, server::raft::Time)>;
  /// Calls the store with the local time, unless the host has crashed since, and checks the result.
  /// `source` is the sender; timers and the disk count as the host itself.
  void enter(Endpoint source, Call call);
  void enter(Call call) { enter(endpoint_, std::move(call)); }
  void wake_at(VirtualTime when);
  static void nothing(const Result<void>& /*result*/) {}
  void arm();
  [[nodiscard]] server::raft::Time time() const;

  // Model of server/rpc.
  void propose(const Request& request, core::Command command);
  void decided(const Request& request, const core::Command& command,
               Result<server::Decided> result);
  void wait(const Request& request, const core::Acquire& acquire);
  void read(const Request& request, const std::string& name);
  void watch(const Request& request, core::Revision start);
  void tell_watcher(const std::shared_ptr<Stream>& stream);
  void reply(const Request& request, decltype(Reply::what) what);
  [[nodiscard]] bool misbehaves(Mutant mutant, std::uint64_t one_in);

  World& world_;
  Network& network_;
  Checker& checker_;
  Directory& directory_;
  Endpoint endpoint_;
  HostClock clock_;
  Disk disk_;
  std::unique_ptr<Serving> serving_;
  std::uint64_t life_ =
      0;  ///< Number of boots and crashes; odd: up. Callbacks of another life are ignored.
  VirtualTime paused_until_{};
  /// Events during a pause. They run in the order of each source; the order between sources is
  /// random, as with several sockets that are ready at once.
  std::map<Endpoint, std::deque<Call>> backlog_;
  std::optional<VirtualTime> armed_;
  bool is_drain_due_ = false;
  bool is_disk_full_ = false;
  server::raft::Index checked_{};
};

}  // namespace tenure::simulation
