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
#include "server/raft/journal_options.hpp"
#include "server/raft/record.hpp"
#include "server/raft/report.hpp"
#include "server/raft/segments.hpp"
#include "server/raft/space.hpp"

namespace tenure::server::raft {

/// What one sync made durable.
struct Synced {
  std::chrono::nanoseconds took{};
  std::size_t entries = 0;
};

/// The log on disk, in segments. A failed write or sync ends the process: what the disk has is then
/// unknown, and a second fsync would not tell (Rebello et al., "Can Applications Recover from fsync
/// Failures?", 2020). append(), sync(), cut() and restart() belong to one thread; the questions may
/// be asked from any.
class Journal {
 public:
  struct Opened;
  /// Reads what is there. `snapshot` is the newest one; index 0: none. Torn ends are cut off with a
  /// warning; a write is torn only if no fdatasync had finished it. Damage of what was durable is
  /// `invalid_argument` and the detail names file, offset, index and what to do.
  [[nodiscard]] static Result<Opened> open(JournalOptions options, const SnapshotMark& snapshot);

  /// Only for open(): this one has not begun.
  explicit Journal(JournalOptions options);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// To be written by the next sync(): these in place of everything from `first` on.
  void append(Index first, const std::vector<Entry>& entries);
  /// One write and one fdatasync for all that was appended. Waits for space if need be.
  Synced sync();
  /// Removes the segments that have nothing after `last`, if the present one is not among them.
  void cut(Index last);
  /// Removes everything, durably.
  void restart();
  /// From now on nothing waits for space. What does so now, or would have to, is given up, and
  /// nothing after it is written: has_given_up(). Its member knows that it is not durable. On any
  /// thread.
  void stop_waiting() { reserve_.stop_waiting(); }
  /// Belongs to the same thread as sync().
  [[nodiscard]] bool has_given_up() const noexcept { return has_given_up_; }

  [[nodiscard]] Space space() const;
  /// Called on another thread whenever space() may say something else about the next segment.
  void when_space_changes(std::function<void()> tell) { reserve_.when_changed(std::move(tell)); }
  [[nodiscard]] std::size_t segment_bytes() const noexcept { return options_.segment_bytes; }
  /// On disk, whole segments.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct Waiting {
    Index index{};
    Entry entry;
  };

  /// Continues behind what a scan found good.
  [[nodiscard]] Result<void> begin_in(Segment segment, const GroupWriter& writer);
  /// False: given up.
  [[nodiscard]] bool turn_over(std::size_t bytes_min);
  [[nodiscard]] std::size_t encode_what_fits(std::size_t begin, std::string& out);
  /// False: given up.
  [[nodiscard]] bool write_group(const std::string& bytes);

  JournalOptions options_;
  Segment segment_;
  GroupWriter writer_;
  BlockWriter out_;                            ///< Of the segment.
  std::map<std::uint64_t, SegmentUse> known_;  ///< By number of the segment.
  std::vector<Waiting> waiting_;
  bool has_given_up_ = false;
  std::atomic<std::size_t> left_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  DurableEnd durable_end_;
  SegmentReserve reserve_;  ///< Last: its thread ends first.
};

struct Journal::Opened {
  std::unique_ptr<Journal> journal;
  Index first{1};  ///< Of the entries.
  std::vector<Entry> entries;
};

}  // namespace tenure::server::raft
