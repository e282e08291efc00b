#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>

#include "server/raft/entry.hpp"
#include "server/raft/report.hpp"

namespace tenure::server::raft {

struct JournalOptions {
  std::filesystem::path folder;
  ClusterId cluster{};
  std::size_t segment_bytes = std::size_t{16} << 20;
  std::chrono::milliseconds retry{1000};  ///< Interval of checks for space on a full disk.
  Report report;
};

}  // namespace tenure::server::raft
