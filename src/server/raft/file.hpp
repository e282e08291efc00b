#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/error.hpp>

namespace tenure::server::raft {

/// RAII file descriptor. Errors contain the path and the error of the system: `resource_exhausted`
/// for lack of space, `unavailable` otherwise. Move-only; not thread safe.
class File {
 public:
  enum class Mode : std::uint8_t { read, change, create };

  [[nodiscard]] static Result<File> open(const std::filesystem::path& path, Mode mode);

  File() = default;
  File(File&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept;
  ~File() { close(); }

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  [[nodiscard]] Result<void> write_at(std::size_t offset, std::string_view bytes);
  /// Starts writeback of a range and waits for it (sync_file_range). The range is durable only
  /// after sync_content(), which then blocks other writers for a shorter time.
  [[nodiscard]] Result<void> write_back(std::size_t offset, std::size_t bytes);
  /// Fills `room`; an error if the file ends before.
  [[nodiscard]] Result<void> read_at(std::size_t offset, std::span<char> room) const;
  /// Enables O_DIRECT; false: the file system does not support it. Direct writes require whole
  /// blocks, aligned in memory and in the file.
  [[nodiscard]] bool enable_direct_io() noexcept;
  /// Whole content.
  [[nodiscard]] Result<std::string> read_all() const;
  /// fdatasync(): the content, and the size if it changed.
  [[nodiscard]] Result<void> sync_content();
  void close() noexcept;

 private:
  File(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// fsync() of a directory: makes created, renamed and removed names durable.
[[nodiscard]] Result<void> sync_folder(const std::filesystem::path& folder);

/// Renames a file within a directory, durably.
[[nodiscard]] Result<void> rename_durably(const std::filesystem::path& from,
                                          const std::filesystem::path& to);

/// Atomically replaces the content of a file with `begin` followed by `rest`, by write, fsync and
/// rename. After a crash the file has either the old or the new content.
[[nodiscard]] Result<void> replace_file(const std::filesystem::path& path, std::string_view begin,
                                        std::string_view rest = {});

/// Error about `what` and `path` from errno of the last failed system call.
[[nodiscard]] std::unexpected<Error> system_failure(const std::string& what,
                                                    const std::filesystem::path& path);

}  // namespace tenure::server::raft
