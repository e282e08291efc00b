#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/file.hpp"
#include "server/raft/report.hpp"
#include "server/raft/vote_slots.hpp"

namespace tenure::server::raft {

/// The term and the vote in it, on disk in two copies (see vote_slots.hpp). Neither a crash during
/// save() nor the decay of one copy loses a vote that save() had confirmed. Needs no disk space
/// after the first save. Not thread safe.
class VoteFile {
 public:
  /// Creates a missing file. Restores a damaged copy from the other one, with a warning.
  /// `invalid_argument` if the newest vote may be lost; the detail names the file and the remedy.
  [[nodiscard]] static Result<VoteFile> open(const std::filesystem::path& path,
                                             const Report& report = {});

  [[nodiscard]] Vote vote() const noexcept { return newest_.vote; }
  /// ENSURES: both copies are durable on return.
  [[nodiscard]] Result<void> save(Vote vote);

 private:
  explicit VoteFile(File file) : file_(std::move(file)) {}
  /// Makes one slot hold `newest_`, durably.
  [[nodiscard]] Result<void> write_slot(std::size_t slot);

  File file_;
  VoteSlot newest_;
};

}  // namespace tenure::server::raft
