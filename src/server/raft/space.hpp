#pragma once

#include <cstddef>
#include <cstdint>

namespace tenure::server::raft {

/// Space that is left for the log.
struct Space {
  std::size_t left = 0;  ///< In the present segment.
  bool is_next_ready = false;
  bool is_short = false;  ///< There is no next segment, and it could not be made.
};

/// State of the disk that the log is on.
struct DiskState {
  Space space{};
  std::size_t segment_bytes{};  ///< Size of a whole segment.
  std::uint64_t log_bytes{};    ///< Size of all segments.
};

}  // namespace tenure::server::raft
