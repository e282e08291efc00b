#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "core/command.hpp"
#include "core/ids.hpp"

namespace tenure::core {

/// The content of one entry of the log: commands that are applied one after the other, all with
/// the same stamp. (The floor of a stamp's revision is reached by the first of them.)
struct Batch {
  Stamp stamp{};
  std::vector<Command> commands{};

  friend bool operator==(const Batch&, const Batch&) = default;
};

/// The first byte that encode() writes. decode_batch() knows this one and no other.
inline constexpr std::uint8_t batch_version = 1;

/// A batch as bytes, the same for equal batches. Every batch can be written, also one with
/// commands that will be refused. No checksum: the log has its own.
[[nodiscard]] std::string encode(const Batch& batch);

/// The batch that was encoded. Bytes that were cut or changed may be another batch, but never a
/// malformed one: otherwise `invalid_argument`, and the detail says what is wrong and where.
[[nodiscard]] Result<Batch> decode_batch(std::string_view bytes);

}  // namespace tenure::core
