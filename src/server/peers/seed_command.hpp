#pragma once

#include "server/config/command_line.hpp"
#include "server/process/exit_code.hpp"

namespace tenure::server::peers {

/// `tenured seed`: creates the data directory of a member or of a single node from a saved state.
/// Prints the result, or the error to stderr.
[[nodiscard]] ExitCode run_seed(const SeedCommand& command);

}  // namespace tenure::server::peers
