#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "server/raft/file.hpp"

namespace tenure::server::raft {

/// Writes a file on from an offset, in whole blocks and past the system's cache, where the file
/// system lets us: a sync then has nothing to gather, and takes about an eighth less. Where it does
/// not, through the cache.
///
/// The last block is written again with what comes next. What was durable in it stays as it was in
/// either version, so a torn write cannot harm it.
class BlockWriter {
 public:
  BlockWriter() = default;
  /// REQUIRES: the file has these bytes already, so that no write makes it longer.
  [[nodiscard]] static Result<BlockWriter> begin(File& file, std::size_t file_bytes,
                                                 std::size_t offset);

  /// So many, or more: a file of this size can be written past the cache.
  [[nodiscard]] static constexpr std::size_t whole_blocks(std::size_t bytes) noexcept {
    return (bytes + block_bytes - 1) / block_bytes * block_bytes;
  }

  /// Behind what was written last. After an error the same may be tried again. Not yet durable.
  [[nodiscard]] Result<void> write(File& file, std::string_view bytes);

  [[nodiscard]] bool is_direct() const noexcept { return is_direct_; }

 private:
  static constexpr std::size_t block_bytes = 4096;
  /// Memory that is kept between writes.
  static constexpr std::size_t blocks_kept = 64;
  struct alignas(block_bytes) Block {
    std::array<char, block_bytes> bytes;
  };

  [[nodiscard]] Result<void> write_blocks(File& file, std::string_view bytes);
  void advance(std::size_t bytes);

  bool is_direct_ = false;
  std::size_t offset_ = 0;     ///< Where the next bytes go.
  std::vector<Block> blocks_;  ///< The first one begins with what its block in the file has.
};

}  // namespace tenure::server::raft
