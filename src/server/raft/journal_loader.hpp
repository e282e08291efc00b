#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/durable_end.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/record.hpp"
#include "server/raft/report.hpp"
#include "server/raft/segments.hpp"

namespace tenure::server::raft {

struct JournalOptions {
  std::filesystem::path folder;
  ClusterId cluster{};
  std::size_t segment_bytes = std::size_t{16} << 20;
  std::chrono::milliseconds retry{1000};  ///< Interval of checks for space on a full disk.
  Report report;
};

/// Contents of one segment.
struct SegmentUse {
  Index last{};         ///< Last entry in it.
  std::size_t bytes{};  ///< Size of the file.
};

/// Recovery: reads the segments of a directory in order and finds the position where the log
/// continues. Used once by Journal::open(): read(), the queries, then continue_log(). Not thread
/// safe.
class JournalLoader {
 public:
  /// `snapshot` is the newest one; index 0: none. REQUIRES: the options outlive this.
  JournalLoader(const JournalOptions& options, const SnapshotMark& snapshot);

  /// Reads the log and settles it with the snapshot. Errors: as Journal::open().
  [[nodiscard]] Result<void> read();

  [[nodiscard]] Index first() const noexcept { return first_; }
  [[nodiscard]] std::vector<Entry> take_entries() { return std::move(entries_); }
  /// Segments that belong to the log, by number.
  [[nodiscard]] const std::map<std::uint64_t, SegmentUse>& segments() const noexcept {
    return segments_;
  }
  /// End of what is durable. Everything that was read counts as acknowledged from now on.
  [[nodiscard]] LogEnd end() const;

  /// Place of the next record.
  struct Continuation {
    Segment segment;
    GroupWriter writer;
    std::optional<Segment> next{};  ///< Segment that follows, if it exists already.
  };
  /// Cuts off a torn end and chooses the segment in which the log continues: a new one, or the
  /// last one if there is no space for a new one. REQUIRES: end() is recorded.
  [[nodiscard]] Result<Continuation> continue_log();

 private:
  /// The last segment with records.
  struct Used {
    std::uint64_t number{};
    std::size_t bytes{};
    SegmentScan scan;  ///< Without its records.
  };

  [[nodiscard]] Index last() const { return Index{first_.get() + entries_.size() - 1}; }
  [[nodiscard]] std::filesystem::path path_of(std::uint64_t number) const {
    return segment_path(options_.folder, number);
  }
  /// Reads one segment; empty ones are kept for new records.
  [[nodiscard]] Result<void> read_segment(std::uint64_t number);
  /// Takes the records of a segment; an error if it is damaged.
  [[nodiscard]] Result<void> take_records(std::uint64_t number, const SegmentScan& scan);
  /// Appends one record to the log, in place of entries with the same or a later index. An error if
  /// entries that no snapshot covers are missing.
  [[nodiscard]] Result<void> take_record(const Record& record, const std::string& where);
  /// Keeps the log only if it continues the snapshot.
  [[nodiscard]] Result<void> settle_with_snapshot();
  /// Removes all segments, durably.
  [[nodiscard]] Result<void> discard();
  /// Makes what was read durable before it counts as acknowledged.
  [[nodiscard]] Result<void> sync_last_segment();
  /// Unused segment for the next record: an existing one, or a new one.
  [[nodiscard]] Result<Segment> next_segment();
  /// Continues in the last segment, after it has overwritten a torn end.
  [[nodiscard]] Result<Continuation> continue_in_last();

  const JournalOptions& options_;
  const SnapshotMark snapshot_;
  const std::optional<LogEnd> durable_;  ///< End of the log as an earlier process recorded it.
  Index first_{1};
  std::vector<Entry> entries_;
  std::map<std::uint64_t, SegmentUse> segments_;
  std::uint64_t group_ = 0;  ///< Number of the newest group of records.
  std::optional<Used> used_;
  std::vector<Segment> untouched_;  ///< Empty segments behind `used_`.
  std::uint64_t newest_removed_ = 0;
};

}  // namespace tenure::server::raft
