#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "core/batch.hpp"
#include "core/limits.hpp"
#include "core/state_machine.hpp"
#include "server/raft/cluster_clock.hpp"
#include "server/raft/compaction.hpp"
#include "server/raft/disk.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/intake.hpp"
#include "server/raft/journal.hpp"
#include "server/raft/replica.hpp"
#include "server/raft/report.hpp"
#include "server/raft/snapshot_file.hpp"
#include "server/raft/vote_file.hpp"
#include "server/store.hpp"

namespace tenure::server::raft {

struct NodeOptions {
  /// Where everything is kept. Made if it is not there.
  std::filesystem::path folder;
  /// What the configuration says; 0 accepts what the folder says. A new folder gets a random
  /// cluster and member 1 for what is 0.
  ExpectedIdentity identity{};
  /// Become part of the state when this member leads and they differ from it.
  core::Limits limits{};

  /// How much may wait for an answer. More is refused with `resource_exhausted`. Costs memory.
  Intake::Limits in_flight{};
  /// How much goes into one entry, which is one write. More makes a burst quicker and everybody's
  /// answer later.
  std::size_t batch_commands_max = 4096;
  std::size_t batch_bytes_max = std::size_t{1} << 20;
  /// Entries that may be on their way while the next fills. With DiskPlace::loop always one.
  std::size_t entries_in_flight_max = 2;
  DiskPlace disk = DiskPlace::loop;

  /// Of one file of the log, reserved in full. Larger ones are rarer to change and cost space.
  std::size_t segment_bytes = std::size_t{16} << 20;
  /// A snapshot is taken when the log behind the last one has more bytes than this and than
  /// `snapshot_factor` times the last snapshot. Bounds the log on disk and in memory, and the time
  /// of a start.
  std::size_t snapshot_log_bytes = std::size_t{64} << 20;
  std::size_t snapshot_factor = 2;
  /// How often to look for space on a full disk.
  std::chrono::milliseconds space_retry{1000};
  /// How long to wait after a snapshot that failed.
  std::chrono::milliseconds snapshot_retry{10'000};

  /// Hears what people should know. Called from several threads.
  Report report = [](Severity, const std::string&) {};
};

/// The replicated store on this machine: a Raft group of one member so far. open() reads the disk,
/// start() makes it live on a thread of its own, stop() ends it with a snapshot.
class Node final : public Store, private Effects {
 public:
  /// Errors, each with a detail for people: `would_block`: another process has the folder;
  /// `invalid_argument`: it is somebody else's or damaged; `resource_exhausted`: no space to begin;
  /// `unavailable`: the system refused something.
  [[nodiscard]] static Result<std::unique_ptr<Node>> open(NodeOptions options);
  ~Node() override;

  /// Returns when everything that was acknowledged before is in the state again.
  void start();
  /// Refuses what waits and what comes with `unavailable`, takes a snapshot, ends the thread. A
  /// decision that was given up may come on the calling thread.
  void stop();

  void propose(core::Command command, Decision decided) override;
  void read(Look look) override;
  void peek(Look look) override;
  void take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) override;
  void change_members(MemberChange change,
                      std::move_only_function<void(Result<void>)> done) override;
  void transfer_leadership(std::uint64_t to,
                           std::move_only_function<void(Result<void>)> done) override;
  [[nodiscard]] Identity identity() const override;
  [[nodiscard]] boost::asio::io_context& loop() override { return loop_; }
  void listen(Listener& listener) override { listeners_.push_back(&listener); }

  struct Loaded;
  Node(NodeOptions options, Loaded loaded);

 private:
  using SnapshotDone = std::move_only_function<void(Result<std::uint64_t>)>;

  /// One entry of our own on its way.
  struct Flight {
    Index index{};
    Term term{};
    core::Batch batch;
    std::vector<Decision> decisions;  ///< One for each command; may be empty.
    std::size_t proposals = 0;        ///< Those that came through the intake,
    std::size_t bytes = 0;            ///< and their weight there.
    std::chrono::steady_clock::time_point proposed;
  };

  /// How many bytes the log takes at present: everything is let in, or what is left is rationed.
  struct Room {
    std::size_t for_all;      ///< For commands that only keep or give back.
    std::size_t for_growing;  ///< For those that make the state larger.
  };

  // Effects, called by the replica: node_effects.cpp
  std::chrono::milliseconds now() override;
  void save_vote(Term term, MemberId voted_for) override;
  void append(Index first, const std::vector<Entry>& entries) override;
  void install(const Snapshot& snapshot) override;
  void send(MemberId peer, Message message) override;
  void send_snapshot(MemberId peer, Term term) override;
  void apply(Index index, const Entry& entry) override;
  void restore(const Snapshot& snapshot) override;
  void role_changed(Role role) override;
  void fatal(const std::string& why) override;

  // Batches: node_batches.cpp
  void drain();
  void resume_draining();
  [[nodiscard]] bool may_submit() const;
  [[nodiscard]] bool is_space_known() const;
  [[nodiscard]] Flight gather();
  [[nodiscard]] Room room() const;
  [[nodiscard]] bool admit(const Proposal& proposal, Room& room) const;
  void refuse(Proposal proposal, Error error);
  void submit(Flight flight);
  void give_up(Flight flight, const Error& error);
  void give_up_all(const Error& error);
  void propose_own(core::Command command);
  void apply_own(Flight flight);
  void apply_foreign(const Entry& entry);
  void tell_applied(const core::Applied& applied);

  // After every event: node.cpp
  void after_event();
  void work_disk();
  void begin_to_lead();
  void arm_tick();
  void tick();
  void arm_replica_timer();
  void look(Look look);
  [[nodiscard]] LogPosition position() const;
  void tell_all(const std::function<void(Listener&)>& tell);

  // Snapshots: node_snapshots.cpp
  void compact_if_due();
  [[nodiscard]] bool is_compaction_due() const;
  void retry_compaction_later();
  void grant_wishes();
  void begin_compaction(SnapshotMark mark);
  void finish_compaction(const SnapshotMark& mark, std::size_t bytes, const Result<void>& result);
  void request_snapshot(SnapshotDone done);

  const NodeOptions options_;
  boost::asio::io_context loop_{1};  ///< Outlives all threads, which post to it.
  Folder folder_;
  VoteFile votes_;
  std::unique_ptr<SnapshotFile> snapshot_file_;
  std::unique_ptr<Journal> journal_;

  // Everything below, up to the intake, belongs to the thread of the loop.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::vector<Listener*> listeners_;
  core::StateMachine machine_;
  std::optional<Recovered> recovered_;  ///< Until the start.
  Replica replica_;
  ClusterClock clock_;
  /// Leads, and this was the last entry when that began: the no-op of the new term, or one that was
  /// known to be committed. When it is applied, so is everything that was ever acknowledged.
  std::optional<Index> past_;
  bool is_ready_ = false;  ///< Leads, and the past is applied.
  bool is_draining_paused_ = false;
  std::deque<Flight> flights_;
  std::vector<core::Command> own_commands_;  ///< To go into the next entry.
  boost::asio::steady_timer tick_timer_;
  std::optional<std::chrono::steady_clock::time_point> tick_at_;
  bool is_tick_on_its_way_ = false;
  std::chrono::steady_clock::time_point no_tick_before_;
  boost::asio::steady_timer replica_timer_;
  bool is_replica_timer_armed_ = false;
  boost::asio::steady_timer retry_timer_;

  std::size_t log_bytes_ = 0;  ///< Of commands applied since the last snapshot.
  std::size_t snapshot_bytes_ = 0;
  bool is_compacting_ = false;
  std::chrono::steady_clock::time_point compaction_began_;
  bool is_retry_pending_ = false;
  struct SnapshotWish {
    Index wanted{};
    SnapshotDone done;
  };
  std::vector<SnapshotWish> wishes_;

  Intake intake_;
  // Threads last: they end before what they use.
  Compactor compactor_;
  Disk disk_;
  std::thread thread_;
};

}  // namespace tenure::server::raft
