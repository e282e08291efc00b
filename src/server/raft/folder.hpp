#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/file.hpp"

namespace tenure::server::raft {

/// Of a folder: drawn when it is made, so that one that was lost is not taken for its successor.
/// 0: not known.
using Incarnation = Strong<std::uint64_t, struct IncarnationTag>;
/// What the state of a folder began with. Those who began a cluster together have the same. 0: not
/// known, as of one that joined.
using Origin = Strong<std::uint64_t, struct OriginTag>;
/// Of a cluster that begins with nothing.
inline constexpr Origin origin_of_nothing{1};

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
///     incarnation 3c2569b2f1a0d84e
///     origin 0000000000000001
///
/// The last two are missing in those of earlier versions, and are added then.
class Folder {
 public:
  /// Makes the folder and its identity if there is none yet, with this origin. Errors:
  /// `would_block`: another process has it; `invalid_argument`: it belongs to somebody else, or is
  /// not ours at all.
  [[nodiscard]] static Result<Folder> open(const std::filesystem::path& path,
                                           ExpectedIdentity expected, Origin origin = {});

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] ClusterId cluster() const noexcept { return cluster_; }
  [[nodiscard]] MemberId member() const noexcept { return member_; }
  [[nodiscard]] Incarnation incarnation() const noexcept { return incarnation_; }
  [[nodiscard]] Origin origin() const noexcept { return origin_; }

 private:
  Folder(std::filesystem::path path, File lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  [[nodiscard]] Result<void> read_identity(ExpectedIdentity expected);
  [[nodiscard]] Result<void> begin(ExpectedIdentity expected, Origin origin);
  [[nodiscard]] Result<void> write_identity();

  std::filesystem::path path_;
  File lock_;
  ClusterId cluster_;
  MemberId member_;
  Incarnation incarnation_;
  Origin origin_;
};

}  // namespace tenure::server::raft
