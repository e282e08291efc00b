#pragma once

#include <cstdint>
#include <filesystem>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/file.hpp"

namespace tenure::server::raft {

struct Vote {
  Term term{};
  MemberId voted_for{};
};

/// The term and the vote in it. Two slots are written in turn, so that a crash in the middle of a
/// write leaves the other; the one with the larger number counts. Needs no space after the first
/// time.
class VoteFile {
 public:
  /// Makes the file if it is not there. Refuses one without a single good slot.
  [[nodiscard]] static Result<VoteFile> open(const std::filesystem::path& path);

  [[nodiscard]] Vote vote() const noexcept { return vote_; }
  /// ENSURES: durable on return.
  [[nodiscard]] Result<void> save(Vote vote);

 private:
  explicit VoteFile(File file) : file_(std::move(file)) {}

  File file_;
  Vote vote_;
  std::uint64_t writes_ = 0;
};

}  // namespace tenure::server::raft
