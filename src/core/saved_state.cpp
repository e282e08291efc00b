#include "core/saved_state.hpp"

#include <algorithm>
#include <utility>

#include "core/bytes.hpp"

namespace tenure::core {
namespace {

constexpr std::string_view magic = "TENURESV";
constexpr std::size_t checksum_bytes = 4;
constexpr std::size_t head_bytes = 8 + 4 + 4 + 5 * 8 + 8 + checksum_bytes;
/// Maximum number of damaged blocks in an error. The file is unusable in any case.
constexpr std::size_t places_max = 8;

std::string checksum_of(std::string_view bytes) {
  ByteWriter checksum;
  checksum.fixed32(crc32c(bytes));
  return std::move(checksum).take();
}

struct Head {
  SavedFrom from{};
  std::uint64_t state_bytes = 0;
};

Result<Head> read_head(std::string_view file) {
  if (!file.starts_with(magic)) {
    return fail(Errc::invalid_argument, "byte 0: it does not begin like a saved snapshot");
  }
  ByteReader reader(file.substr(magic.size()));
  const auto version = reader.fixed32();
  if (reader.ok() && version != saved_state_version) {
    return fail(Errc::invalid_argument, "byte 8: version " + std::to_string(version) +
                                            " is not known here; this program reads version " +
                                            std::to_string(saved_state_version));
  }
  if (file.size() < head_bytes) {
    return fail(Errc::invalid_argument,
                "byte " + std::to_string(file.size()) + ": it ends within the head");
  }
  const auto sealed = file.substr(0, head_bytes - checksum_bytes);
  if (file.substr(sealed.size(), checksum_bytes) != checksum_of(sealed)) {
    return fail(Errc::invalid_argument,
                "bytes 0 to " + std::to_string(head_bytes) + ", the head, are damaged");
  }
  const auto block = reader.fixed32();
  if (block != saved_block_bytes) {
    return fail(Errc::invalid_argument, "byte 12: blocks of another size than version 1 has");
  }
  Head head;
  head.from.cluster = reader.fixed64();
  head.from.member = reader.fixed64();
  head.from.term = reader.fixed64();
  head.from.index = reader.fixed64();
  head.from.saved_at_ms = reader.fixed64();
  head.state_bytes = reader.fixed64();
  return head;
}

}  // namespace

SavedStateWriter::SavedStateWriter(const SavedFrom& from, std::uint64_t state_bytes, Sink sink)
    : sink_(std::move(sink)), left_(state_bytes) {
  ByteWriter head;
  head.raw(magic);
  head.fixed32(saved_state_version);
  head.fixed32(saved_block_bytes);
  head.fixed64(from.cluster);
  head.fixed64(from.member);
  head.fixed64(from.term);
  head.fixed64(from.index);
  head.fixed64(from.saved_at_ms);
  head.fixed64(state_bytes);
  head.fixed32(crc32c(head.bytes()));
  sink_(head.bytes());
}

void SavedStateWriter::add(std::string_view bytes) {
  block_ += bytes;
  std::size_t written = 0;
  for (; block_.size() - written >= saved_block_bytes; written += saved_block_bytes) {
    write_block(std::string_view(block_).substr(written, saved_block_bytes));
  }
  block_.erase(0, written);
}

bool SavedStateWriter::finish() {
  if (!block_.empty()) {
    write_block(std::exchange(block_, {}));
  }
  return left_ == 0;
}

void SavedStateWriter::write_block(std::string_view block) {
  // With too many bytes this wraps and is not 0 at finish(), which then returns false.
  left_ -= block.size();
  sink_(block);
  sink_(checksum_of(block));
}

Result<SavedState> read_saved_state(std::string_view file) {
  const auto head = read_head(file);
  if (!head) {
    return std::unexpected(head.error());
  }
  SavedState saved{.from = head->from};
  std::string damaged;
  std::size_t places = 0;
  auto at = head_bytes;
  for (auto left = head->state_bytes; left > 0;) {
    const auto size = std::min<std::uint64_t>(left, saved_block_bytes);
    const auto end = at + size + checksum_bytes;
    if (end > file.size()) {
      return fail(Errc::invalid_argument, "byte " + std::to_string(file.size()) +
                                              ": it is cut off; the state should have " +
                                              std::to_string(head->state_bytes) + " bytes");
    }
    const auto block = file.substr(at, size);
    if (file.substr(at + size, checksum_bytes) != checksum_of(block) && ++places <= places_max) {
      damaged +=
          (damaged.empty() ? "bytes " : ", ") + std::to_string(at) + " to " + std::to_string(end);
    }
    saved.state += block;
    left -= size;
    at = end;
  }
  if (places > 0) {
    return fail(Errc::invalid_argument, damaged + (places > places_max ? " and more" : "") +
                                            " are damaged: their checksum does not fit");
  }
  if (at != file.size()) {
    return fail(Errc::invalid_argument,
                "byte " + std::to_string(at) + ": something was appended to it");
  }
  return saved;
}

}  // namespace tenure::core
