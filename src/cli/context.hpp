#pragma once

#include <tenure/error.hpp>

#include "cli/arguments.hpp"

namespace tenure::cli {

/// Adds the options of a context of the configuration file to those of the command line, which take
/// precedence. The file is TENURE_CONFIG, else tenure/config.toml in XDG_CONFIG_HOME or ~/.config.
/// The context is --context, else TENURE_CONTEXT, else `context` in the file. --context takes
/// precedence over TENURE_URL, and the other two do not; --url excludes --context. A URL that does
/// not come from the context never gets the token of the context.
[[nodiscard]] Result<void> apply_context(Arguments& arguments);

}  // namespace tenure::cli
