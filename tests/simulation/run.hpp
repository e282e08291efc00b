#pragma once

#include <cstddef>
#include <ostream>
#include <string>

#include "history/event.hpp"
#include "simulation/options.hpp"

namespace tenure::simulation {

/// What a run did, and what it found wrong; empty: nothing.
struct Outcome {
  std::string failure{};
  std::size_t commands = 0;  ///< Applied, each counted once.
  std::size_t grants = 0;
  std::size_t events = 0;  ///< Of the history.
  std::size_t watched = 0;
  std::size_t crashes = 0;
  std::size_t faults = 0;
  std::size_t reads = 0;  ///< Linearizable ones that were answered.
  std::size_t terms = 0;  ///< With a leader.
  std::size_t stale_writes = 0;
  std::size_t names_searched = 0;
};

/// Everything follows from the options. `trace`: where to tell what happens, or null; `history`:
/// where to put the history, or null.
[[nodiscard]] Outcome run(const Options& options, std::ostream* trace = nullptr,
                          history::Events* history = nullptr);

}  // namespace tenure::simulation
