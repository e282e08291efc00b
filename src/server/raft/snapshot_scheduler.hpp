#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/space.hpp"
#include "server/raft/time.hpp"

namespace tenure::server::raft {

struct SnapshotSchedulerOptions {
  /// A snapshot is due when the log behind the last one has more bytes than this and than
  /// `factor` times the last snapshot. Bounds the log on disk and in memory, and the time of a
  /// start.
  std::size_t log_bytes = std::size_t{64} << 20;
  std::size_t factor = 2;
  /// Pause after a snapshot that failed, or that left the disk full.
  std::chrono::milliseconds retry{10'000};
  /// Time in which the same snapshot is sent once to a peer.
  std::chrono::milliseconds resend{1200};
};

/// Snapshot scheduler: decides when the state is written to disk, when the log behind a snapshot is
/// cut, and when a peer gets a snapshot; keeps the requests that wait for one. At most one snapshot
/// is being written. Writes nothing: the owner carries out the decisions. Not thread safe.
class SnapshotScheduler {
 public:
  using Done = std::move_only_function<void(Result<std::uint64_t>)>;

  SnapshotScheduler(const SnapshotSchedulerOptions& options, std::size_t snapshot_bytes)
      : options_(options), snapshot_bytes_(snapshot_bytes) {}
  SnapshotScheduler(const SnapshotScheduler&) = delete;
  SnapshotScheduler& operator=(const SnapshotScheduler&) = delete;

  /// `first`: the log on disk begins here.
  void start(Index first) { log_first_ = first; }
  /// A command with this payload was applied.
  void applied(std::size_t bytes) { log_bytes_ += bytes; }
  /// A snapshot of the leader, of this size, has replaced the state.
  void restored(std::size_t bytes);

  /// `done` gets the index of the first durable snapshot that covers `wanted`.
  void request(Index wanted, Done done);
  /// Completes the requests that the newest durable snapshot covers.
  void complete_requests(Index newest);
  void fail_requests(const Error& error);

  /// Whether a snapshot should begin. `newest`: last entry of the newest durable snapshot.
  [[nodiscard]] bool is_due(Index newest, const Space& space) const;
  [[nodiscard]] bool is_running() const noexcept { return running_.has_value(); }
  /// REQUIRES: !is_running().
  void begin(SnapshotMark mark, Time now);

  enum class Outcome : std::uint8_t {
    taken,
    failed,     ///< Another attempt follows after a pause.
    overtaken,  ///< A snapshot of the leader is newer and took its place on disk.
  };
  struct Finished {
    Outcome outcome = Outcome::taken;
    SnapshotMark mark;
    Time::duration took{};
  };
  /// The snapshot that is_running() is written, with this size, or failed.
  [[nodiscard]] Finished finish(const Result<std::size_t>& bytes, Index newest, Time now);
  /// No snapshot becomes due until the pause is over.
  void pause(Time now) { again_at_ = now + options_.retry; }
  void resume_if_due(Time now);

  /// Entries up to the result are no longer needed on disk. `first`: first entry of the log in
  /// memory. Empty: nothing is new.
  [[nodiscard]] std::optional<Index> cut(Index first);

  /// Whether a snapshot with this last entry is to be sent to the peer now, or is on its way.
  [[nodiscard]] bool may_send(MemberId peer, Index index, Time now);
  /// A new leadership has sent nothing yet.
  void forget_sent() { sent_.clear(); }

  /// Records that the newest snapshot on disk cannot be read. False: that is known, and its
  /// replacement is on its way.
  [[nodiscard]] bool mark_unreadable(Index newest);

  [[nodiscard]] std::size_t log_bytes() const noexcept { return log_bytes_; }
  [[nodiscard]] std::size_t snapshot_bytes() const noexcept { return snapshot_bytes_; }
  [[nodiscard]] std::optional<Time> deadline() const { return again_at_; }

 private:
  struct Request {
    Index wanted{};
    Done done;
  };
  struct Running {
    SnapshotMark mark;
    std::size_t log_bytes = 0;  ///< Bytes of the log that the snapshot covers.
    Time began;
  };
  struct Sent {
    Index index{};
    Time at;
  };

  const SnapshotSchedulerOptions options_;
  std::size_t log_bytes_ = 0;  ///< Size of the commands applied since the last snapshot.
  std::size_t snapshot_bytes_ = 0;
  std::optional<Running> running_;
  Index last_taken_{};  ///< Last entry of the newest snapshot that this member wrote.
  Index log_first_{};   ///< First entry that the disk has to keep.
  std::optional<Time> again_at_;
  std::vector<Request> requests_;
  std::optional<Index> unreadable_;  ///< Last entry of a snapshot that is being replaced.
  std::map<MemberId, Sent> sent_;
};

}  // namespace tenure::server::raft
