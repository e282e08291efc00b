#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tenure/error.hpp>

#include "server/peers/frame.hpp"
#include "server/raft/message.hpp"

namespace tenure::server::peers {

/// Limits of snapshot transfers. A snapshot can have hundreds of megabytes, so it is sent in chunks
/// between other messages, and resumes after a reconnect:
///
///     sender                                   receiver
///     begin {transfer, mark, size}     →
///                                      ←       have {transfer, bytes so far}
///     chunk {transfer, offset, bytes}  →
///                                      ←       have {transfer, bytes so far}
///
/// With the last byte the receiver delivers an InstallSnapshot.
struct SnapshotLimits {
  std::size_t chunk_bytes = std::size_t{256} << 10;
  /// Chunks without acknowledgement. Bounds the snapshot bytes in the socket buffers in front of a
  /// heartbeat.
  std::size_t chunks_in_flight_max = 2;
  /// Size of a snapshot. The receiver keeps it in memory.
  std::size_t bytes_max = std::size_t{16} << 30;
  /// Time without progress after which a transfer is aborted; Raft requests it again.
  std::chrono::milliseconds stall_timeout{30'000};
};

/// Acknowledgement of the receiver: number of bytes that it has.
struct SnapshotHave {
  std::uint64_t transfer{};
  std::size_t bytes{};
};
[[nodiscard]] Frame encode(const SnapshotHave& have);
[[nodiscard]] Result<SnapshotHave> decode_have(const ReceivedFrame& frame);

/// Sending end for one peer: at most one transfer at a time. Not thread safe.
class SnapshotSender {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit SnapshotSender(SnapshotLimits limits) : limits_(limits) {}

  /// Starts a transfer. False: another one is in progress, and this snapshot is dropped.
  [[nodiscard]] bool offer(raft::InstallSnapshot message, Time now);
  /// Continues the transfer in this term, if it is newer.
  void raise(raft::Term term);
  /// The connection was re-established: asks the receiver how much it has.
  void connected();
  /// Next frame of the transfer; empty: none may be sent now.
  [[nodiscard]] std::optional<Frame> next();
  void heard(const SnapshotHave& have, Time now);
  /// Aborts a transfer without progress for stall_timeout.
  void give_up_if_stalled(Time now);

  [[nodiscard]] bool is_idle() const noexcept { return !message_.has_value(); }

 private:
  /// First frame: identifies the snapshot and its size.
  [[nodiscard]] Frame begin() const;
  /// Next chunk behind the bytes that were sent on this connection.
  [[nodiscard]] Frame chunk();

  SnapshotLimits limits_;
  /// Snapshot that is being sent; empty: none.
  std::optional<raft::InstallSnapshot> message_;
  /// Random id of the transfer, by which the receiver resumes it.
  std::uint64_t transfer_ = 0;
  bool is_begun_ = false;  ///< Whether the begin frame was sent on this connection.
  std::optional<std::size_t>
      acknowledged_;  ///< Last acknowledgement on this connection; empty: none.
  std::size_t sent_ = 0;
  /// Time of the last progress.
  Time progressed_at_{};
};

/// Receiving end for one peer. Not thread safe.
class SnapshotReceiver {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Acknowledgement to send, and the snapshot if it is complete.
  struct Step {
    SnapshotHave have{};
    std::optional<raft::InstallSnapshot> complete{};
  };

  explicit SnapshotReceiver(SnapshotLimits limits) : limits_(limits) {}

  /// `invalid_argument`: not a begin frame, or a snapshot beyond bytes_max.
  [[nodiscard]] Result<Step> begin(const ReceivedFrame& frame, Time now);
  /// `invalid_argument`: not a chunk. A chunk that does not fit is answered with the present size.
  [[nodiscard]] Result<Step> chunk(const ReceivedFrame& frame, Time now);
  void give_up_if_stalled(Time now);

  [[nodiscard]] bool is_idle() const noexcept { return !mark_.has_value(); }
  /// Memory in use.
  [[nodiscard]] std::size_t bytes() const noexcept { return body_.size(); }

 private:
  /// Acknowledges the present size, and delivers a complete snapshot.
  [[nodiscard]] Step step(raft::Term term);

  SnapshotLimits limits_;
  /// Mark of the incomplete snapshot; empty: none.
  std::optional<raft::SnapshotMark> mark_;
  /// Announced size of its body.
  std::size_t size_ = 0;
  /// Received bytes of its body.
  std::string body_;
  std::uint64_t transfer_ = 0;
  std::uint64_t finished_ = 0;  ///< Last completed transfer.
  std::size_t finished_bytes_ = 0;
  Time progressed_at_{};
};

}  // namespace tenure::server::peers
