#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/block_writer.hpp"
#include "server/raft/durable_end.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/journal_loader.hpp"
#include "server/raft/record.hpp"
#include "server/raft/report.hpp"
#include "server/raft/segments.hpp"
#include "server/raft/space.hpp"

namespace tenure::server::raft {

/// Result of one sync.
struct Synced {
  std::chrono::nanoseconds took{};
  std::size_t entries = 0;
};

/// Segmented write-ahead log. A failed write or sync ends the process: the content of the disk is
/// then unknown, and a second fsync would falsely succeed (Rebello et al., "Can Applications
/// Recover from fsync Failures?", 2020). append(), sync(), cut() and restart() belong to one
/// thread; space(), bytes() and stop_waiting() are thread safe.
class Journal {
 public:
  struct Opened;
  /// Reads the log. `snapshot` is the newest one; index 0: none. A torn end is truncated and
  /// logged; a write counts as torn only if no fdatasync had completed it. Damage of durable
  /// records is `invalid_argument`; the detail names file, offset, index and remedy.
  [[nodiscard]] static Result<Opened> open(JournalOptions options, const SnapshotMark& snapshot);

  /// For open() only: the journal is not positioned yet.
  explicit Journal(JournalOptions options);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Queues entries that replace the log from `first` on, for the next sync().
  void append(Index first, const std::vector<Entry>& entries);
  /// Group commit: one write and one fdatasync for all queued entries. Waits for space on a full
  /// disk.
  Synced sync();
  /// Removes the segments that end at or before `last`, except the present one.
  void cut(Index last);
  /// Removes all segments, durably.
  void restart();
  /// Ends all waiting for space: a write that waits, or would have to, is abandoned, and so is
  /// every later one (has_given_up()). Abandoned entries are never acknowledged. Thread safe.
  void stop_waiting() { reserve_.stop_waiting(); }
  /// Whether a write was abandoned. On the thread of sync().
  [[nodiscard]] bool has_given_up() const noexcept { return has_given_up_; }

  [[nodiscard]] Space space() const;
  /// Sets the callback for changes of space(); called on the thread of the reserve.
  void when_space_changes(std::function<void()> on_change) {
    reserve_.when_changed(std::move(on_change));
  }
  [[nodiscard]] std::size_t segment_bytes() const noexcept { return options_.segment_bytes; }
  /// Size of all segments on disk.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct Waiting {
    Index index{};
    Entry entry;
  };

  /// Continues in this segment behind its last valid record.
  [[nodiscard]] Result<void> begin_in(Segment segment, const GroupWriter& writer);
  /// False: abandoned, because waiting for space has ended.
  [[nodiscard]] bool roll_over(std::size_t bytes_min);
  [[nodiscard]] std::size_t encode_what_fits(std::size_t begin, std::string& out);
  /// False: abandoned, because waiting for space has ended.
  [[nodiscard]] bool write_group(const std::string& bytes);

  JournalOptions options_;
  Segment segment_;
  GroupWriter writer_;
  BlockWriter out_;                            ///< Writer of the present segment.
  std::map<std::uint64_t, SegmentUse> known_;  ///< Segments of the log by number.
  std::vector<Waiting> waiting_;
  bool has_given_up_ = false;
  std::atomic<std::size_t> left_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  DurableEnd durable_end_;
  SegmentReserve reserve_;  ///< Declared last: its thread ends first.
};

struct Journal::Opened {
  std::unique_ptr<Journal> journal;
  Index first{1};  ///< Index of the first entry.
  std::vector<Entry> entries;
};

}  // namespace tenure::server::raft
