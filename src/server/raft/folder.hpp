#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/file.hpp"

namespace tenure::server::raft {

/// Incarnation of a data directory: a random number drawn at its creation. Distinguishes a lost
/// directory from its replacement. 0: unknown.
using Incarnation = Strong<std::uint64_t, struct IncarnationTag>;
/// Origin of the state of a data directory: equal for all initial members of a cluster. 0: unknown,
/// as for a member that joined later.
using Origin = Strong<std::uint64_t, struct OriginTag>;
/// Origin of a cluster that started with an empty state.
inline constexpr Origin origin_of_nothing{1};

/// Identity that the configuration requires. 0: any; the directory decides, or a new one is chosen.
struct ExpectedIdentity {
  ClusterId cluster{};
  MemberId member{};
};

/// Data directory of one member: locked by this process for the lifetime of the object, and bound
/// to one member of one cluster by a text file, the identity:
///
///     tenure 1
///     cluster 9f86d081884c7d65
///     member 1
///     incarnation 3c2569b2f1a0d84e
///     origin 0000000000000001
///
/// Directories of earlier versions lack the last two lines; open() adds them. Move-only; not thread
/// safe.
class Folder {
 public:
  /// Opens or creates the directory; a new one gets this origin. `would_block`: another process
  /// holds the lock; `invalid_argument`: the directory belongs to another member, or is not a data
  /// directory.
  [[nodiscard]] static Result<Folder> open(const std::filesystem::path& path,
                                           ExpectedIdentity expected, Origin origin = {});

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] ClusterId cluster() const noexcept { return cluster_; }
  [[nodiscard]] MemberId member() const noexcept { return member_; }
  [[nodiscard]] Incarnation incarnation() const noexcept { return incarnation_; }
  [[nodiscard]] Origin origin() const noexcept { return origin_; }

 private:
  Folder(std::filesystem::path path, File lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  /// Reads the identity and compares it with the expected one; completes one of an earlier version.
  [[nodiscard]] Result<void> read_identity(ExpectedIdentity expected);
  /// Chooses the identity of a new directory and writes it.
  [[nodiscard]] Result<void> begin(ExpectedIdentity expected, Origin origin);
  /// Replaces the identity file atomically and durably.
  [[nodiscard]] Result<void> write_identity();

  std::filesystem::path path_;
  /// Open lock file; the lock ends with its descriptor.
  File lock_;
  ClusterId cluster_;
  MemberId member_;
  Incarnation incarnation_;
  Origin origin_;
};

}  // namespace tenure::server::raft
