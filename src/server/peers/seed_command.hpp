#pragma once

#include "server/config/command_line.hpp"
#include "server/process/exit_code.hpp"

namespace tenure::server::peers {

/// `tenured seed`: makes the data directory of a member or of a single node from a saved state.
/// Prints what it did, or to stderr why it could not.
[[nodiscard]] ExitCode run_seed(const SeedCommand& command);

}  // namespace tenure::server::peers
