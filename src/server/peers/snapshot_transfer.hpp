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

/// A snapshot may have hundreds of megabytes. It goes in chunks between other messages, a few at a
/// time, and after a broken connection it goes on where it was:
///
///     sender                                   receiver
///     begin {transfer, mark, size}     →
///                                      ←       have {transfer, bytes so far}
///     chunk {transfer, offset, bytes}  →
///                                      ←       have {transfer, bytes so far}
///
/// When the last byte is there the receiver has an InstallSnapshot.
struct SnapshotLimits {
  std::size_t chunk_bytes = std::size_t{256} << 10;
  /// Chunks that are not acknowledged yet: how much of a snapshot a heartbeat may have before it in
  /// the buffers of the connection.
  std::size_t chunks_in_flight_max = 2;
  /// Of a whole one. What is received is kept in memory.
  std::size_t bytes_max = std::size_t{16} << 30;
  /// A transfer that stands still for so long is given up; Raft asks again.
  std::chrono::milliseconds timeouts{30'000};
};

/// What the receiver says.
struct SnapshotHave {
  std::uint64_t transfer{};
  std::size_t bytes{};
};
[[nodiscard]] Frame encode(const SnapshotHave& have);
[[nodiscard]] Result<SnapshotHave> decode_have(const ReceivedFrame& frame);

/// The sender's end, for one peer: at most one snapshot at a time.
class SnapshotSender {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit SnapshotSender(SnapshotLimits limits) : limits_(limits) {}

  /// False: another one is on its way, and this one is dropped.
  [[nodiscard]] bool offer(raft::InstallSnapshot message, Time now);
  /// What is on its way is from now on said by the leader of this term, should that be newer.
  void raise(raft::Term term);
  /// A new connection: ask the receiver how much it has.
  void connected();
  /// What to send next, if it may be sent now.
  [[nodiscard]] std::optional<Frame> next();
  void heard(const SnapshotHave& have, Time now);
  /// Lets go of a snapshot that does not get on.
  void give_up_if_stalled(Time now);

  [[nodiscard]] bool is_idle() const noexcept { return !message_.has_value(); }

 private:
  [[nodiscard]] Frame begin() const;
  [[nodiscard]] Frame chunk();

  SnapshotLimits limits_;
  std::optional<raft::InstallSnapshot> message_;
  std::uint64_t transfer_ = 0;
  bool is_begun_ = false;           ///< On this connection.
  std::optional<std::size_t> had_;  ///< What the receiver has, when it said so on this connection.
  std::size_t sent_ = 0;
  Time moved_{};
};

/// The receiver's end, for one sender.
class SnapshotReceiver {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// What to answer, and what is complete now.
  struct Step {
    SnapshotHave have{};
    std::optional<raft::InstallSnapshot> complete{};
  };

  explicit SnapshotReceiver(SnapshotLimits limits) : limits_(limits) {}

  /// `invalid_argument`: this is no begin, or larger than what is allowed.
  [[nodiscard]] Result<Step> begin(const ReceivedFrame& frame, Time now);
  /// `invalid_argument`: this is no chunk. One that does not fit is answered with what is there.
  [[nodiscard]] Result<Step> chunk(const ReceivedFrame& frame, Time now);
  void give_up_if_stalled(Time now);

  [[nodiscard]] bool is_idle() const noexcept { return !mark_.has_value(); }
  /// Memory in use.
  [[nodiscard]] std::size_t bytes() const noexcept { return body_.size(); }

 private:
  [[nodiscard]] Step step(raft::Term term);

  SnapshotLimits limits_;
  std::optional<raft::SnapshotMark> mark_;
  std::size_t size_ = 0;
  std::string body_;
  std::uint64_t transfer_ = 0;
  std::uint64_t finished_ = 0;  ///< The last transfer that was completed, and its size.
  std::size_t finished_bytes_ = 0;
  Time moved_{};
};

}  // namespace tenure::server::peers
