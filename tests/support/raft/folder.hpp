#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <stdlib.h>
#include <unistd.h>

#include "server/raft/report.hpp"
#include "support/raft/event_line.hpp"

namespace tenure::test {

/// An empty folder, gone with the test. In memory where that is possible: a process that dies loses
/// as little there as on a disk, and syncs cost nothing.
class TemporaryFolder {
 public:
  TemporaryFolder() : TemporaryFolder(in_memory()) {}
  explicit TemporaryFolder(const std::filesystem::path& parent) {
    auto name = (parent / "tenure-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] static std::filesystem::path in_memory() {
    const std::filesystem::path memory = "/dev/shm";
    const bool has_memory = ::access(memory.c_str(), W_OK) == 0;
    return has_memory ? memory : on_disk();
  }
  [[nodiscard]] static std::filesystem::path on_disk() {
    return std::filesystem::temp_directory_path();
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

[[nodiscard]] inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_content(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

/// Records the log events of a store.
class Reports {
 public:
  [[nodiscard]] server::raft::Report report() {
    return [this](log::Level level, std::string_view event, log::Fields fields) {
      const std::lock_guard guard(mutex_);
      texts_.push_back(line_of(event, fields));
      warnings_ += level >= log::Level::warning ? 1 : 0;
    };
  }
  [[nodiscard]] std::size_t warnings() const {
    const std::lock_guard guard(mutex_);
    return warnings_;
  }
  [[nodiscard]] std::string all() const {
    const std::lock_guard guard(mutex_);
    std::string text;
    for (const auto& one : texts_) {
      text += one + "\n";
    }
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
  std::size_t warnings_ = 0;
};

}  // namespace tenure::test
