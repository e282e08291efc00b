#pragma once

#include <cstdint>

#include "server/raft/entry.hpp"

namespace tenure::server::peers {

/// What went to and came from one peer since the start of the process.
struct PeerCounts {
  raft::MemberId peer{};
  bool is_connected = false;  ///< We can send to it.
  std::uint64_t connections = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t messages_dropped = 0;
  std::uint64_t snapshot_chunks_sent = 0;
  std::uint64_t snapshot_chunks_received = 0;
};

}  // namespace tenure::server::peers
