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

/// A file of the log. Zeros are written to it before it gets its name, so that later writes need
/// neither space nor a change of the file's size, and fdatasync has only the content to write.
struct Segment {
  std::uint64_t number{};
  File file;
  std::size_t bytes{};
};

[[nodiscard]] std::filesystem::path segment_path(const std::filesystem::path& folder,
                                                 std::uint64_t number);
/// The numbers of those in the folder, in order. What was left unfinished is removed.
[[nodiscard]] std::vector<std::uint64_t> list_segments(const std::filesystem::path& folder);

[[nodiscard]] Result<Segment> make_segment(const std::filesystem::path& folder, SegmentId id,
                                           std::size_t bytes);

/// Keeps the next segment ready before it is needed, on a thread of its own, which also removes old
/// ones (both take milliseconds). If there is no space for it, tries again every second.
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

  /// Starts to make the segment of this number.
  void prepare(std::uint64_t number);
  /// One that is there already.
  void prepare(Segment ready);
  /// The next segment, with at least so many bytes. Waits until it is made, for space if need be.
  /// Nothing: there is no space, and it is not to be waited for any more.
  [[nodiscard]] std::optional<Segment> take(std::size_t bytes_min);
  /// From now on nobody waits for space; who does so now is woken. On any thread.
  void stop_waiting();
  [[nodiscard]] bool may_wait() const;
  void remove(std::vector<std::uint64_t> numbers);

  [[nodiscard]] bool is_ready() const;
  /// The last attempt failed, and there is none.
  [[nodiscard]] bool has_failed() const;
  /// Called on the thread of the reserve whenever an answer of the two above may have changed.
  void when_changed(std::function<void()> tell);

 private:
  void run();
  void make(std::uint64_t number);
  void remove_now(const std::vector<std::uint64_t>& numbers);
  void note(Result<Segment> made) TENURE_REQUIRES(mutex_);
  void note_failure(const Error& error) TENURE_REQUIRES(mutex_);

  const Options options_;
  mutable sys::Mutex mutex_;  ///< Guards: the rest.
  sys::Signal changed_;
  std::optional<std::uint64_t> wanted_ TENURE_GUARDED_BY(mutex_);
  std::optional<Segment> ready_ TENURE_GUARDED_BY(mutex_);
  std::optional<Error> failure_ TENURE_GUARDED_BY(mutex_);
  std::vector<std::uint64_t> doomed_ TENURE_GUARDED_BY(mutex_);
  std::function<void()> tell_ TENURE_GUARDED_BY(mutex_) = [] {};
  bool may_wait_ TENURE_GUARDED_BY(mutex_) = true;
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  ///< Last: it uses everything above.
};

}  // namespace tenure::server::raft
