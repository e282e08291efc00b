#pragma once

#include <functional>
#include <memory>
#include <string>

#include <tenure/error.hpp>
#include <tenure/options.hpp>

#include "backends/backend.hpp"
#include "backends/url.hpp"

namespace tenure::detail {

/// Opens the backend of a scheme. Takes out of the URL's parameters those that it knows; what is
/// left over is an unknown option.
using OpenBackend = std::function<Result<std::unique_ptr<backends::Backend>>(
    backends::Url& url, const ConnectOptions& options)>;

/// From now on connect() knows this scheme, which was opened by what it returns, if at all. For
/// backends that are libraries of their own, and for who wants to see what goes to one. Thread
/// safe.
OpenBackend add_scheme(std::string scheme, OpenBackend open);

}  // namespace tenure::detail
