#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "core/command.hpp"
#include "core/ids.hpp"

namespace tenure::core {

/// Content of one log entry: commands that are applied in order, all with the same stamp. (Only the
/// first command can raise the revision to that of the stamp.)
struct Batch {
  /// Format of the encoding. Fields that the version lacks are not written.
  ClusterVersion version = oldest_version;
  Stamp stamp{};
  std::vector<Command> commands{};

  friend bool operator==(const Batch&, const Batch&) = default;
};

/// Encodes a batch canonically: equal batches give equal bytes. The first byte is the version.
/// Commands are not validated, because a refusal must be replicated too. No checksum: each log
/// record has one. REQUIRES: the version has all the commands.
[[nodiscard]] std::string encode(const Batch& batch);

/// Decodes a batch. Damaged bytes may decode to another batch, but never to a malformed one; the
/// error is then `invalid_argument` with the cause and the offset. `unsupported`: a newer program
/// wrote the batch.
[[nodiscard]] Result<Batch> decode_batch(std::string_view bytes);

/// Version of an encoded batch, which may be newer than this program; 0 if `bytes` is no batch.
[[nodiscard]] ClusterVersion version_of_batch(std::string_view bytes);

}  // namespace tenure::core
