#pragma once

#include <functional>
#include <memory>
#include <string>

#include <tenure/client/options.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"
#include "backends/url.hpp"

namespace tenure::backends {

/// Factory of a backend for the URLs of one scheme. Removes the parameters that it knows from the
/// URL; connect() reports those that remain as unknown options.
using OpenBackend =
    std::function<Result<std::unique_ptr<Backend>>(Url& url, const ConnectOptions& options)>;

/// Registry of the URL schemes that connect() knows. Each backend that is a library of its own
/// registers its schemes when the program starts. Returns the previous factory, empty if there was
/// none. Thread safe.
OpenBackend add_scheme(std::string scheme, OpenBackend open);

/// Factory that is registered for this scheme. `unsupported`: there is none; the error lists the
/// registered schemes and names the library that has to be linked.
[[nodiscard]] Result<OpenBackend> find_scheme(const std::string& scheme);

}  // namespace tenure::backends
