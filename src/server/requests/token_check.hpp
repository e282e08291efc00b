#pragma once

#include <cstdint>

#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/state.hpp"

namespace tenure::server {

/// Status of a fencing token.
enum class TokenVerdict : std::uint8_t {
  held,         ///< A current holder has it.
  superseded,   ///< A holder with a newer token exists.
  ended,        ///< Its hold has ended, and no holder has a newer token.
  never_given,  ///< The store has not issued it yet.
};

/// Result of check_token().
struct TokenCheck {
  TokenVerdict verdict = TokenVerdict::never_given;
  core::FencingToken newest{};         ///< Newest token of the current holders; 0: none.
  const core::Hold* holder = nullptr;  ///< Holder of this token; valid until the state changes.
};

/// Whether the holder of this token still holds the lock.
[[nodiscard]] TokenCheck check_token(const core::State& state, const core::Resource& resource,
                                     core::FencingToken token);

}  // namespace tenure::server
