#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"

namespace tenure::server::peers {

/// View of shared bytes, such as an entry of the log or a snapshot, and a reference that keeps them
/// alive.
struct Slice {
  raft::Bytes owner;
  std::string_view bytes;
};

/// Unit of transfer. Wire format: CRC-32C (4) of the bytes from here to the end of the meta, length
/// of the meta (4), length of the bodies (4), meta, bodies. Integers are little-endian. The meta
/// contains the length and a checksum of each body.
struct Frame {
  std::string head;           ///< Encoded bytes up to the end of the meta.
  std::vector<Slice> bodies;  ///< Payloads, written without a copy.

  [[nodiscard]] std::size_t body_bytes() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return head.size() + body_bytes(); }
};

inline constexpr std::size_t frame_prefix_bytes = 12;

/// REQUIRES: the meta and the bodies are shorter than 4 GiB.
[[nodiscard]] Frame make_frame(std::string_view meta, std::vector<Slice> bodies = {});

/// Received frame; valid during the callback only.
struct ReceivedFrame {
  std::string_view meta;
  std::string_view body;
};

/// Limits of one frame. A longer frame breaks the connection.
struct FrameLimits {
  std::size_t meta_bytes_max = std::size_t{2} << 20;
  std::size_t body_bytes_max = std::size_t{80} << 20;
};

/// Incremental frame parser. Buffers at most one incomplete frame, so the limits bound its memory.
/// Not thread safe.
class FrameReader {
 public:
  /// Consumer of a frame; false: stop parsing.
  using Take = std::function<bool(const ReceivedFrame&)>;

  explicit FrameReader(FrameLimits limits) : limits_(limits) {}

  void set_limits(FrameLimits limits) noexcept { limits_ = limits; }
  /// Calls `take` for every frame that is complete. `invalid_argument`: the bytes are not a frame;
  /// the stream cannot be resynchronised.
  [[nodiscard]] Result<void> feed(std::string_view bytes, const Take& take);

 private:
  /// Size of the frame at the front; 0: its prefix is incomplete.
  [[nodiscard]] Result<std::size_t> next_size(std::string_view bytes) const;
  /// Parses all complete frames at the front. Returns the number of bytes that were consumed.
  [[nodiscard]] Result<std::size_t> take_all(std::string_view bytes, const Take& take);

  /// Limits of each frame; an inbound connection raises them when its peer is authenticated.
  FrameLimits limits_;
  std::string rest_;        ///< Bytes of an incomplete frame.
  std::size_t wanted_ = 0;  ///< Size of `rest_` before which parsing cannot succeed.
};

}  // namespace tenure::server::peers
