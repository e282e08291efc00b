#pragma once

#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::backends {

/// What a client answers in a child of fork(): it is the parent's.
[[nodiscard]] Error inherited_error();

/// Takes the place of a client's backend in a child of fork(), and refuses everything. Thread safe.
[[nodiscard]] Backend& inherited_backend() noexcept;

}  // namespace tenure::backends
