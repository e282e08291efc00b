#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// Format version; no other version is read.
inline constexpr std::uint32_t snapshot_file_version = 1;

/// File of the newest snapshot. Layout: "TENURESF", version (4), length of what follows up to
/// the body (4), the mark, length (8) and CRC-32C (4) of the body, CRC-32C of all this (4), body.
/// Thread safe.
class SnapshotFile {
 public:
  explicit SnapshotFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Empty: no snapshot exists. `invalid_argument`: damaged, or of another version; the detail
  /// names the error and the remedy.
  [[nodiscard]] Result<std::optional<Snapshot>> read() const;

  /// Atomically replaces an older snapshot, durably; a newer one stays. On failure the older one
  /// stays and no temporary file remains.
  [[nodiscard]] Result<void> write(const SnapshotMark& mark, std::string_view body);

  /// File size; 0: no snapshot exists.
  [[nodiscard]] std::size_t bytes() const;

 private:
  std::filesystem::path path_;
  mutable sys::Mutex mutex_;  ///< Guards: the file, against concurrent writers.
  Index written_ TENURE_GUARDED_BY(mutex_){};
};

}  // namespace tenure::server::raft
