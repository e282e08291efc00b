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

/// A part of bytes that somebody else owns too: the log in memory, or a snapshot.
struct Slice {
  raft::Bytes owner;
  std::string_view bytes;
};

/// What is written in one piece. On the wire: CRC-32C (4) of all that follows up to the end of the
/// meta, length of the meta (4), length of the bodies (4), the meta, the bodies. Numbers are
/// little-endian. The meta says how long each body is, and has a checksum of each.
struct Frame {
  std::string head;           ///< Up to the end of the meta, ready to be written.
  std::vector<Slice> bodies;  ///< Never copied.

  [[nodiscard]] std::size_t body_bytes() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return head.size() + body_bytes(); }
};

inline constexpr std::size_t frame_prefix_bytes = 12;

/// REQUIRES: the meta and the bodies are shorter than 4 GiB.
[[nodiscard]] Frame make_frame(std::string_view meta, std::vector<Slice> bodies = {});

/// A frame that arrived; lasts as long as the call it is given to.
struct ReceivedFrame {
  std::string_view meta;
  std::string_view body;
};

struct FrameLimits {
  std::size_t meta_bytes_max = std::size_t{2} << 20;
  std::size_t body_bytes_max = std::size_t{80} << 20;
};

/// Finds frames in a stream of bytes. Holds back at most one unfinished frame, so the limits bound
/// its memory.
class FrameReader {
 public:
  /// Whether to go on.
  using Take = std::function<bool(const ReceivedFrame&)>;

  explicit FrameReader(FrameLimits limits) : limits_(limits) {}

  void set_limits(FrameLimits limits) noexcept { limits_ = limits; }
  /// Calls `take` for every frame that is complete now. `invalid_argument`: these bytes are none;
  /// there is no way to find the next one.
  [[nodiscard]] Result<void> feed(std::string_view bytes, const Take& take);

 private:
  /// How many bytes of a complete frame are at the front; 0: it is not complete.
  [[nodiscard]] Result<std::size_t> next_size(std::string_view bytes) const;
  [[nodiscard]] Result<std::size_t> take_all(std::string_view bytes, const Take& take);

  FrameLimits limits_;
  std::string rest_;        ///< Of a frame that is not complete.
  std::size_t wanted_ = 0;  ///< Bytes that `rest_` must have before it is worth a look.
};

}  // namespace tenure::server::peers
