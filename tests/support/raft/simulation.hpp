#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/raft/replica.hpp"

namespace tenure::test {

/// What a run of the simulation did, and what it found wrong; empty: nothing.
struct SimulationResult {
  std::string failure;
  std::size_t acknowledged = 0;
  std::size_t crashes = 0;
  std::size_t snapshots = 0;
  std::size_t installs = 0;
};

/// Three replicas in one thread, with a network that drops, delays, reorders and duplicates, and
/// disks that lose in a crash what was not yet durable. Everything follows from the seed. Checks
/// the safety of Raft at every step, and at the end, when faults have stopped, that all members
/// agree and that a command gets through.
[[nodiscard]] SimulationResult simulate(std::uint64_t seed, std::chrono::milliseconds length);

}  // namespace tenure::test
