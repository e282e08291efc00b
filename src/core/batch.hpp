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
  /// Format of the bytes. Fields that the version does not have are not written.
  ClusterVersion version = oldest_version;
  Stamp stamp{};
  std::vector<Command> commands{};

  friend bool operator==(const Batch&, const Batch&) = default;
};

/// A batch as bytes, the same for equal batches; the first is the version. Every batch can be
/// written, also one with commands that will be refused. No checksum: the log has its own.
/// REQUIRES: the version has all the commands.
[[nodiscard]] std::string encode(const Batch& batch);

/// The batch that was encoded. Bytes that were cut or changed may be another batch, but never a
/// malformed one: otherwise `invalid_argument`, and the detail says what is wrong and where.
/// `unsupported`: a program of a newer version wrote it.
[[nodiscard]] Result<Batch> decode_batch(std::string_view bytes);

/// The version of an encoded batch, which may be newer than this program. 0: the bytes are none.
[[nodiscard]] ClusterVersion version_of_batch(std::string_view bytes);

}  // namespace tenure::core
