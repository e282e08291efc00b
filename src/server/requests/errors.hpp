#pragma once

#include <tenure/error.hpp>

namespace tenure::server {

/// Error of a call or wait that ends because this member is no longer the leader. A retry with the
/// same request id at the new leader returns the outcome, or continues the wait.
// The request id makes the retry safe: the next leader recognises a request that was decided.
[[nodiscard]] inline Error leadership_lost() {
  return {.code = Errc::unavailable,
          .detail =
              "this member is no longer the leader; retry at the leader with the same request id"};
}

}  // namespace tenure::server
