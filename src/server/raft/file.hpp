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

/// An open file. Errors name the file and what the system said; those for lack of space are
/// `resource_exhausted`, all others `unavailable`.
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
  /// Lets the disk write this part now, and waits. It is not durable before sync_content(), which
  /// has less to do then, and keeps others waiting for less.
  [[nodiscard]] Result<void> push_out(std::size_t offset, std::size_t bytes);
  /// All of `room`; an error if the file ends before.
  [[nodiscard]] Result<void> read_at(std::size_t offset, std::span<char> room) const;
  /// From now on writes go straight to the disk, if the file system has that: true. Then they are
  /// of whole blocks, in memory and in the file.
  [[nodiscard]] bool bypass_cache() noexcept;
  /// From the beginning to the end.
  [[nodiscard]] Result<std::string> read_all() const;
  /// Content, and size if it changed.
  [[nodiscard]] Result<void> sync_content();
  void close() noexcept;

 private:
  File(std::filesystem::path path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// Makes names that were created, renamed or removed in a folder durable.
[[nodiscard]] Result<void> sync_folder(const std::filesystem::path& folder);

/// Renames within a folder, durably.
[[nodiscard]] Result<void> rename_durably(const std::filesystem::path& from,
                                          const std::filesystem::path& to);

/// Puts these parts, one after the other, in place of what the file had. After a crash it has
/// either the old content or the new one.
[[nodiscard]] Result<void> replace_file(const std::filesystem::path& path, std::string_view begin,
                                        std::string_view rest = {});

/// What the last failed call said, as an error about `what`.
[[nodiscard]] std::unexpected<Error> system_failure(const std::string& what,
                                                    const std::filesystem::path& path);

}  // namespace tenure::server::raft
