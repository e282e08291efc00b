#pragma once

#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::backends {

/// Error of every call in a forked child: the connections belong to the parent process.
[[nodiscard]] Error inherited_error();

/// Null object that replaces a client's backend in a child of fork() and rejects every request,
/// because sockets and threads do not survive fork(). Thread safe.
[[nodiscard]] Backend& inherited_backend() noexcept;

}  // namespace tenure::backends
