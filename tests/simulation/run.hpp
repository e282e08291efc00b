#pragma once

#include <cstddef>
#include <ostream>
#include <string>

#include "history/event.hpp"
#include "simulation/options.hpp"

namespace tenure::simulation {

/// Result of a run. An empty `failure` means success.
struct Outcome {
  std::string failure{};
  std::size_t commands = 0;  ///< Applied commands, each counted once.
  std::size_t grants = 0;
  std::size_t events = 0;  ///< Events of the history.
  std::size_t watched = 0;
  std::size_t crashes = 0;
  std::size_t faults = 0;
  std::size_t reads = 0;  ///< Answered linearizable reads.
  std::size_t terms = 0;  ///< Terms with a leader.
  std::size_t stale_writes = 0;
  std::size_t names_searched = 0;
};

/// Runs a simulation; deterministic in the options. `trace` receives a log, `history` the events;
/// both may be null.
[[nodiscard]] Outcome run(const Options& options, std::ostream* trace = nullptr,
                          history::Events* history = nullptr);

}  // namespace tenure::simulation
