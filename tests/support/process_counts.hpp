#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>

namespace tenure::test {

/// Threads of this process.
[[nodiscard]] inline std::ptrdiff_t thread_count() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// Sockets of this process. Not files: a server in the same process opens those by itself.
[[nodiscard]] inline std::ptrdiff_t socket_count() {
  std::ptrdiff_t sockets = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed_meanwhile;
    const auto target = std::filesystem::read_symlink(entry.path(), closed_meanwhile);
    sockets += target.native().starts_with("socket:") ? 1 : 0;
  }
  return sockets;
}

}  // namespace tenure::test
