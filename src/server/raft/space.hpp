#pragma once

#include <cstddef>

namespace tenure::server::raft {

/// How much can still be written to the log.
struct Space {
  std::size_t left = 0;  ///< In the present segment.
  bool is_next_ready = false;
  bool is_short = false;  ///< There is no next segment, and it could not be made.
};

}  // namespace tenure::server::raft
