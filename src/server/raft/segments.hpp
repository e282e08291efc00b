#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/file.hpp"
#include "server/raft/record.hpp"
#include "server/raft/report.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// Preallocated log file. It is filled with zeros before it gets its name, so that later writes
/// need no space and do not change the file size: fdatasync then writes no metadata.
struct Segment {
  std::uint64_t number{};
  File file;
  std::size_t bytes{};
};

[[nodiscard]] std::filesystem::path segment_path(const std::filesystem::path& folder,
                                                 std::uint64_t number);
/// Segment numbers in a directory, ascending. Removes incomplete segments of an interrupted
/// allocation.
[[nodiscard]] std::vector<std::uint64_t> list_segments(const std::filesystem::path& folder);

[[nodiscard]] Result<Segment> make_segment(const std::filesystem::path& folder, SegmentId id,
                                           std::size_t bytes);

/// Background allocator of the next segment, on a thread of its own, which also removes old
/// segments (both take milliseconds). Without space it retries every `retry`. Thread safe.
class SegmentReserve {
 public:
  struct Options {
    std::filesystem::path folder;
    ClusterId cluster{};
    std::size_t segment_bytes{};
    std::chrono::milliseconds retry{1000};
    Report report;
  };

  explicit SegmentReserve(Options options);
  ~SegmentReserve();
  SegmentReserve(const SegmentReserve&) = delete;
  SegmentReserve& operator=(const SegmentReserve&) = delete;

  /// Requests the segment with this number.
  void prepare(std::uint64_t number);
  /// Adopts an existing segment as the next one.
  void prepare(Segment ready);
  /// The next segment, with at least `bytes_min` bytes. Blocks until it is allocated. Empty: there
  /// is no space, and stop_waiting() was called.
  [[nodiscard]] std::optional<Segment> take(std::size_t bytes_min);
  /// Ends waiting for space, now and later; wakes a blocked take().
  void stop_waiting();
  [[nodiscard]] bool may_wait() const;
  void remove(std::vector<std::uint64_t> numbers);

  [[nodiscard]] bool is_ready() const;
  /// Whether no segment is ready because the last allocation failed.
  [[nodiscard]] bool has_failed() const;
  /// Sets the callback for changes of is_ready() and has_failed(); called on the thread of the
  /// reserve.
  void when_changed(std::function<void()> on_change);

 private:
  /// Body of the thread: removes old segments first, because that may free the space for a new one.
  void run();
  /// Allocates a segment, without the mutex, and notifies take() and the callback.
  void make(std::uint64_t number);
  void remove_now(const std::vector<std::uint64_t>& numbers);
  /// Records the result of an allocation.
  void note(Result<Segment> made) TENURE_REQUIRES(mutex_);
  /// Records a failure; reports the first one of a series only.
  void note_failure(const Error& error) TENURE_REQUIRES(mutex_);

  const Options options_;
  mutable sys::Mutex mutex_;  ///< Guards: all members below.
  sys::Signal changed_;
  /// Number of the segment to be allocated.
  std::optional<std::uint64_t> wanted_ TENURE_GUARDED_BY(mutex_);
  /// Allocated segment that take() returns next.
  std::optional<Segment> ready_ TENURE_GUARDED_BY(mutex_);
  /// Error of the last allocation; empty after a success.
  std::optional<Error> failure_ TENURE_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> to_remove_ TENURE_GUARDED_BY(mutex_);
  std::function<void()> on_change_ TENURE_GUARDED_BY(mutex_) = [] {};
  bool may_wait_ TENURE_GUARDED_BY(mutex_) = true;
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  ///< Declared last: it uses every other member.
};

}  // namespace tenure::server::raft
