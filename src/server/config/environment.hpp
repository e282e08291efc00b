#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "server/config/config.hpp"

namespace tenure::server {

/// Environment of a process as in environ(7): texts of the form NAME=value.
using Environment = std::span<const char* const>;

/// Variables of `tenure` and of the commands that `tenure run` starts. `tenured` ignores them. A
/// test compares the list with the sources of the command.
[[nodiscard]] std::span<const std::string_view> command_variables();

/// Assigns the settings of the environment to `config`: TENURE_LISTEN_GRPC is listen.grpc
/// (Setting::variable()). An empty variable counts as unset. Reports all errors at once, with the
/// names of the variables.
[[nodiscard]] Result<void> read_environment(Environment environment, Config& config);

/// Warnings about variables that begin with TENURE_ and have no effect, one line each. Not errors,
/// because other programs may use the prefix. `config` is the effective configuration.
[[nodiscard]] std::vector<std::string> warnings_about(Environment environment,
                                                      const Config& config);

}  // namespace tenure::server
