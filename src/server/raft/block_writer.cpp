#include "server/raft/block_writer.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace tenure::server::raft {

Result<BlockWriter> BlockWriter::begin(File& file, std::size_t file_bytes, std::size_t offset) {
  BlockWriter writer;
  writer.offset_ = offset;
  writer.blocks_.resize(1);
  const auto used = offset % block_bytes;
  // A direct write replaces whole blocks, so the buffer needs the bytes of the first one that are
  // in the file already.
  auto first = std::span(writer.blocks_.front().bytes).first(used);
  if (auto read = file.read_at(offset - used, first); !read) {
    return std::unexpected(std::move(read).error());
  }
  // A file of another size would need a last block that is not whole.
  writer.is_direct_ = file_bytes % block_bytes == 0 && file.enable_direct_io();
  return writer;
}

Result<void> BlockWriter::write(File& file, std::string_view bytes) {
  if (!is_direct_) {
    auto written = file.write_at(offset_, bytes);
    offset_ += written ? bytes.size() : 0;
    return written;
  }
  auto written = write_blocks(file, bytes);
  if (written) {
    advance(bytes.size());
  }
  return written;
}

Result<void> BlockWriter::write_blocks(File& file, std::string_view bytes) {
  const auto used = offset_ % block_bytes;
  const auto end = used + bytes.size();
  const auto count = (end + block_bytes - 1) / block_bytes;
  blocks_.resize(std::max(blocks_.size(), count));
  auto* const begin = blocks_.front().bytes.data();
  std::memcpy(begin + used, bytes.data(), bytes.size());
  // The rest of the last block is zero, as after the preallocation: recovery reads zeros as the
  // end.
  std::memset(begin + end, 0, count * block_bytes - end);
  return file.write_at(offset_ - used, {begin, count * block_bytes});
}

void BlockWriter::advance(std::size_t bytes) {
  const auto full = (offset_ % block_bytes + bytes) / block_bytes;
  offset_ += bytes;
  // The block that is not full yet becomes the first one of the next write.
  if (full > 0 && full < blocks_.size()) {
    blocks_.front() = blocks_[full];
  }
  // 64 blocks are 256 KiB. A larger batch allocates its buffer again.
  if (blocks_.size() > blocks_kept) {
    blocks_.resize(blocks_kept);
    blocks_.shrink_to_fit();
  }
}

}  // namespace tenure::server::raft
