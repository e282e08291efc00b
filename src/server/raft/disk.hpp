#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "core/state_machine.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/journal.hpp"
#include "server/raft/report.hpp"
#include "server/raft/snapshot_file.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// Thread of the disk operations.
enum class DiskMode : std::uint8_t {
  /// The thread of the store itself, which saves two context switches per command. For single
  /// nodes: no peer times out while the thread waits for the disk.
  loop,
  /// A separate thread: messages and timers are processed during a write.
  thread,
};

/// Executor of the disk operations of a replica, in FIFO order. Group commit: all queued appends
/// share one fdatasync. Thread safe between the store's thread and its own thread.
class Disk {
 public:
  struct Done {
    std::size_t operations = 0;  ///< Number of finished operations; cuts are not counted.
    std::vector<Synced> syncs;
  };
  struct Parts {
    Journal& journal;
    SnapshotFile& snapshot;
    Report report;
    std::function<void()> wake;  ///< Called on the disk thread when operations have finished.
  };

  Disk(DiskMode mode, Parts parts);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  void append(Index first, const std::vector<Entry>& entries);
  void install(const Snapshot& snapshot);
  /// Decoded state of the last installed snapshot.
  [[nodiscard]] core::StateMachine take_installed();
  /// Removes segments up to `last`. Not counted in Done::operations.
  void cut(Index last);

  /// Operations finished since the last call. In DiskMode::loop, performs the queued ones first.
  [[nodiscard]] Done take_done();

 private:
  /// Entries that replace the log from `first` on.
  struct Append {
    Index first{};
    std::vector<Entry> entries;
  };
  /// Removal of the segments up to `last`.
  struct Cut {
    Index last{};
  };
  using Operation = std::variant<Append, Snapshot, Cut>;

  /// Queues an operation and wakes the disk thread.
  void push(Operation operation);
  /// Performs operations in order, without the mutex, because they block.
  [[nodiscard]] Done perform(std::vector<Operation> operations);
  /// Stores and decodes a snapshot; ends the process if either fails.
  void perform_install(const Snapshot& snapshot);
  /// Body of the disk thread.
  void run();

  const DiskMode mode_;
  Parts parts_;
  sys::Mutex mutex_;  ///< Guards: queue, results and stop flag.
  sys::Signal changed_;
  std::vector<Operation> waiting_ TENURE_GUARDED_BY(mutex_);
  Done done_ TENURE_GUARDED_BY(mutex_);
  std::optional<core::StateMachine> installed_ TENURE_GUARDED_BY(mutex_);
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  ///< Declared last: it uses every other member.
};

}  // namespace tenure::server::raft
