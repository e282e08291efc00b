#pragma once

#include <cstddef>
#include <cstdint>

namespace tenure::server::raft {

/// Space that is left for the log.
struct Space {
  std::size_t left = 0;        ///< Free bytes in the present segment.
  bool is_next_ready = false;  ///< Whether the next segment is allocated.
  bool is_short = false;       ///< Whether the allocation of the next segment failed.
};

/// State of the disk that the log is on.
struct DiskState {
  Space space{};
  std::size_t segment_bytes{};  ///< Size of a whole segment.
  std::uint64_t log_bytes{};    ///< Size of all segments.
};

}  // namespace tenure::server::raft
