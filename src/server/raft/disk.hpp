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

/// Who writes to the disk.
enum class DiskMode : std::uint8_t {
  /// The thread of the store itself: no change of threads on the way of a command. For a member
  /// that is alone; nobody misses it while it waits for the disk.
  loop,
  /// A thread of its own: peers and timers go on while it writes.
  thread,
};

/// Does the disk operations of a replica in order; all appends that wait are one sync.
class Disk {
 public:
  struct Done {
    std::size_t operations = 0;  ///< Those that the replica counts.
    std::vector<Synced> syncs;
  };
  struct Parts {
    Journal& journal;
    SnapshotFile& snapshot;
    Report report;
    std::function<void()> wake;  ///< Called when something is done by the other thread.
  };

  Disk(DiskMode place, Parts parts);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  void append(Index first, const std::vector<Entry>& entries);
  void install(const Snapshot& snapshot);
  /// The state of the last snapshot that was installed.
  [[nodiscard]] core::StateMachine take_installed();
  /// Not counted as done.
  void cut(Index last);

  /// What was done since the last call. If the caller is the one who writes: does it now.
  [[nodiscard]] Done take_done();

 private:
  struct Append {
    Index first{};
    std::vector<Entry> entries;
  };
  struct Cut {
    Index last{};
  };
  using Operation = std::variant<Append, Snapshot, Cut>;

  void push(Operation operation);
  [[nodiscard]] Done perform(std::vector<Operation> operations);
  void perform_install(const Snapshot& snapshot);
  void run();

  const DiskMode mode_;
  Parts parts_;
  sys::Mutex mutex_;  ///< Guards: the rest.
  sys::Signal changed_;
  std::vector<Operation> waiting_ TENURE_GUARDED_BY(mutex_);
  Done done_ TENURE_GUARDED_BY(mutex_);
  std::optional<core::StateMachine> installed_ TENURE_GUARDED_BY(mutex_);
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  ///< Last: it uses everything above.
};

}  // namespace tenure::server::raft
