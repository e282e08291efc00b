#pragma once

#include <filesystem>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/file.hpp"

namespace tenure::server::raft {

/// What the configuration says about who this is. 0: nothing; it is as the folder says, or new.
struct ExpectedIdentity {
  ClusterId cluster{};
  MemberId member{};
};

/// The folder of one member: locked for this process as long as it lives, and bound to one member
/// of one cluster by its identity file, which is text:
///
///     tenure 1
///     cluster 9f86d081884c7d65
///     member 1
class Folder {
 public:
  /// Makes the folder and its identity if there is none yet. Errors: `would_block`: another process
  /// has it; `invalid_argument`: it belongs to somebody else, or is not ours at all.
  [[nodiscard]] static Result<Folder> open(const std::filesystem::path& path,
                                           ExpectedIdentity expected);

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] ClusterId cluster() const noexcept { return cluster_; }
  [[nodiscard]] MemberId member() const noexcept { return member_; }

 private:
  Folder(std::filesystem::path path, File lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  [[nodiscard]] Result<void> read_identity(ExpectedIdentity expected);
  [[nodiscard]] Result<void> write_identity(ExpectedIdentity expected);

  std::filesystem::path path_;
  File lock_;
  ClusterId cluster_;
  MemberId member_;
};

}  // namespace tenure::server::raft
