#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// The version that is written; no other is read.
inline constexpr std::uint32_t snapshot_file_version = 1;

/// The newest snapshot of a folder. Layout: "TENURESF", version (4), length of what follows up to
/// the body (4), the mark, length (8) and CRC-32C (4) of the body, CRC-32C of all this (4), body.
/// Thread safe.
class SnapshotFile {
 public:
  explicit SnapshotFile(std::filesystem::path path) : path_(std::move(path)) {}

  /// Nothing if there is none. A damaged one and one of another version are `invalid_argument`,
  /// with a detail that says what is wrong and what to do.
  [[nodiscard]] Result<std::optional<Snapshot>> read() const;

  /// Puts it in place of the older one, durably; a newer one stays. If that fails the older one is
  /// still there and nothing else is.
  [[nodiscard]] Result<void> write(const SnapshotMark& mark, std::string_view body);

  /// Of the whole file; 0: there is none.
  [[nodiscard]] std::size_t bytes() const;

 private:
  std::filesystem::path path_;
  mutable sys::Mutex mutex_;  ///< Guards: the file, against two writers.
  Index written_ TENURE_GUARDED_BY(mutex_){};
};

}  // namespace tenure::server::raft
