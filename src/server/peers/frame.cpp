#include "server/peers/frame.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/bytes.hpp"

namespace tenure::server::peers {
namespace {

/// Fixed-size start of a frame.
struct Prefix {
  std::uint32_t checksum{};
  std::size_t meta_bytes{};
  std::size_t body_bytes{};
};

Prefix read_prefix(std::string_view bytes) {
  core::ByteReader reader(bytes.substr(0, frame_prefix_bytes));
  Prefix prefix;
  prefix.checksum = reader.fixed32();
  prefix.meta_bytes = reader.fixed32();
  prefix.body_bytes = reader.fixed32();
  return prefix;
}

}  // namespace

std::size_t Frame::body_bytes() const noexcept {
  return std::accumulate(
      bodies.begin(), bodies.end(), std::size_t{0},
      [](std::size_t sum, const Slice& body) { return sum + body.bytes.size(); });
}

Frame make_frame(std::string_view meta, std::vector<Slice> bodies) {
  Frame frame{.head = {}, .bodies = std::move(bodies)};
  core::ByteWriter sealed;
  sealed.fixed32(static_cast<std::uint32_t>(meta.size()));
  sealed.fixed32(static_cast<std::uint32_t>(frame.body_bytes()));
  sealed.raw(meta);
  core::ByteWriter head;
  head.fixed32(core::crc32c(sealed.bytes()));
  head.raw(sealed.bytes());
  frame.head = std::move(head).take();
  return frame;
}

Result<void> FrameReader::feed(std::string_view bytes, const Take& take) {
  if (rest_.empty()) {
    // Common case: complete frames, parsed in the receive buffer without a copy.
    const auto used = take_all(bytes, take);
    if (!used) {
      return std::unexpected(used.error());
    }
    // The rest is copied, because the receive buffer is reused for the next read.
    if (*used < bytes.size()) {
      rest_.reserve(wanted_);
      rest_.assign(bytes.substr(*used));
    }
    return {};
  }
  rest_.append(bytes);
  if (rest_.size() < wanted_) {
    return {};
  }
  const auto used = take_all(rest_, take);
  if (!used) {
    return std::unexpected(used.error());
  }
  rest_.erase(0, *used);
  // A large frame is rare: above 1 MiB the buffer is freed instead of kept.
  if (rest_.empty() && rest_.capacity() > (std::size_t{1} << 20)) {
    rest_ = {};
  }
  return {};
}

Result<std::size_t> FrameReader::take_all(std::string_view bytes, const Take& take) {
  std::size_t used = 0;
  for (;;) {
    const auto left = bytes.substr(used);
    const auto size = next_size(left);
    if (!size) {
      return size;
    }
    wanted_ = std::max(*size, frame_prefix_bytes);
    if (*size == 0 || left.size() < *size) {
      return used;
    }
    const auto prefix = read_prefix(left);
    const auto sealed = left.substr(4, frame_prefix_bytes - 4 + prefix.meta_bytes);
    if (core::crc32c(sealed) != prefix.checksum) {
      return fail(Errc::invalid_argument, "checksum mismatch in a frame");
    }
    used += *size;
    const ReceivedFrame frame{
        .meta = left.substr(frame_prefix_bytes, prefix.meta_bytes),
        .body = left.substr(frame_prefix_bytes + prefix.meta_bytes, prefix.body_bytes)};
    // The connection was closed by the consumer: the rest of the bytes is dropped.
    if (!take(frame)) {
      return bytes.size();
    }
  }
}

Result<std::size_t> FrameReader::next_size(std::string_view bytes) const {
  if (bytes.size() < frame_prefix_bytes) {
    return 0;
  }
  const auto prefix = read_prefix(bytes);
  // Checked before anything is buffered: a forged length must not allocate memory.
  if (prefix.meta_bytes > limits_.meta_bytes_max || prefix.body_bytes > limits_.body_bytes_max) {
    return fail(Errc::invalid_argument, "a frame of " + std::to_string(prefix.meta_bytes) + " + " +
                                            std::to_string(prefix.body_bytes) +
                                            " bytes exceeds the limit");
  }
  return frame_prefix_bytes + prefix.meta_bytes + prefix.body_bytes;
}

}  // namespace tenure::server::peers
