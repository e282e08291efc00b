#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "server/raft/background_worker.hpp"
#include "server/raft/compaction.hpp"
#include "server/raft/disk.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/journal.hpp"
#include "server/raft/node_loader.hpp"
#include "server/raft/node_options.hpp"
#include "server/raft/raft_store.hpp"
#include "server/raft/snapshot_file.hpp"
#include "server/raft/transport.hpp"
#include "server/raft/vote_file.hpp"
#include "server/store/store.hpp"
#include "server/store/time_slices.hpp"
#include "sys/steered_clock.hpp"

namespace tenure::server::raft {

/// The replicated store of this process: a RaftStore, which decides, with an event loop thread, a
/// clock, a disk and a network. open() reads the disk, start() starts the thread, stop() takes a
/// snapshot and ends it. propose(), read(), peek() and the other functions of Store are thread
/// safe; their callbacks run on the loop's thread.
class Node final : public Store, private Environment {
 public:
  /// Reads the data directory. `would_block`: another process holds it; `invalid_argument`: it
  /// belongs to another member or is damaged; `resource_exhausted`: no space; `unsupported`: a
  /// newer program wrote it; `unavailable`: a system call failed. Each detail names the file and
  /// the remedy.
  [[nodiscard]] static Result<std::unique_ptr<Node>> open(NodeOptions options);
  ~Node() override;

  /// Sets the transport of a cluster member; a single node has none. REQUIRES: before start().
  void connect(std::unique_ptr<Transport> transport) { transport_ = std::move(transport); }

  /// Starts the thread and returns when the log is loaded. A single node is the leader then, and
  /// its state contains every command that was acknowledged before.
  void start();
  /// Fails waiting and new requests with `unavailable`, transfers the leadership, takes a snapshot
  /// and ends the thread. Callbacks of abandoned proposals may run on the calling thread.
  void stop();

  void propose(core::Command command, Decision decided) override;
  void read(OnRead on_read) override;
  void peek(OnRead on_read) override;
  void take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) override;
  void change_members(MemberChange change,
                      std::move_only_function<void(Result<void>)> done) override;
  void transfer_leadership(std::uint64_t to,
                           std::move_only_function<void(Result<void>)> done) override;
  [[nodiscard]] const core::State& state() const override { return store_.state(); }
  [[nodiscard]] Identity identity() const override;
  [[nodiscard]] const Folder& folder() const noexcept { return folder_; }
  [[nodiscard]] boost::asio::io_context& loop() override { return loop_; }
  /// Executor for client work on the loop's thread, with a lower priority than Raft messages and
  /// timers.
  [[nodiscard]] TimeSlices::Executor client_executor() { return clients_.executor(); }
  void listen(Listener& listener) override;

  /// For open() only.
  Node(NodeOptions options, LoadedNode loaded);

 private:
  // Environment, called by the store.
  void save_vote(Term term, MemberId voted_for) override;
  void append(Index first, const std::vector<Entry>& entries) override;
  void install(const Snapshot& snapshot) override;
  core::StateMachine restore(const Snapshot& snapshot, core::StateMachine before) override;
  void cut(Index last) override;
  void compact(CompactionPlan plan) override;
  [[nodiscard]] DiskState disk() const override;
  void send(MemberId peer, Message message) override;
  void send_snapshot(MemberId peer, Term term) override;
  [[nodiscard]] std::optional<Versions> versions_of(MemberId peer) const override;
  void set_members(const std::vector<Member>& members) override;
  [[nodiscard]] Time local_time() override;
  void drain_soon() override;
  void report(log::Level level, std::string_view event, log::Fields fields) override;
  void fatal(const std::string& error) override;

  // On the thread of the loop.
  /// Makes one entry of the waiting commands.
  void drain();
  /// Follows every event: performs or collects disk operations, and sets the timer.
  void after_event();
  void work_disk();
  void arm_timer();
  void begin_to_stop(std::move_only_function<void()> done);
  /// Posts a request to the loop's thread, with the time of the call.
  template <class Ask>
  void on_loop(Ask ask);

  /// Options as given to open().
  const NodeOptions options_;
  boost::asio::io_context loop_{1};  ///< Declared first: threads post to it until they end.
  TimeSlices clients_;
  Folder folder_;
  VoteFile votes_;
  std::unique_ptr<SnapshotFile> snapshot_file_;
  std::unique_ptr<Journal> journal_;

  // The members from here to the threads belong to the loop's thread.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  Listeners listeners_;
  std::unique_ptr<Transport> transport_;
  sys::ServiceClock clock_;
  RaftStore store_;  ///< Its proposal queue is thread safe.
  /// Timer of the store's deadline.
  boost::asio::steady_timer timer_;
  /// Time at which the timer fires; empty: it is not set.
  std::optional<Time> timer_at_;
  bool is_over_ = false;  ///< Whether the transport has stopped.
  std::map<MemberId, Term>
      snapshots_being_read_;  ///< Snapshot reads in progress: recipient and term.

  // Threads are declared last: they end before the members that they use.
  Compactor compactor_;
  Disk disk_;
  BackgroundWorker background_worker_;
  std::thread thread_;
};

}  // namespace tenure::server::raft
