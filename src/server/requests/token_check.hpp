#pragma once

#include <cstdint>

#include "core/ids.hpp"
#include "core/item.hpp"
#include "core/state.hpp"

namespace tenure::server {

/// What has become of a fencing token.
enum class TokenVerdict : std::uint8_t {
  held,         ///< It is that of a present holder.
  superseded,   ///< Somebody holds the lock by a newer one.
  ended,        ///< Its hold is over, and nobody holds the lock by a newer one.
  never_given,  ///< The store has not come so far.
};

struct TokenCheck {
  TokenVerdict verdict = TokenVerdict::never_given;
  core::FencingToken newest{};         ///< Of the present holders; 0: there is none.
  const core::Hold* holder = nullptr;  ///< Of this token; lasts as long as the state stays.
};

/// Does whoever has this token still hold the lock?
[[nodiscard]] TokenCheck check_token(const core::State& state, const core::Resource& resource,
                                     core::FencingToken token);

}  // namespace tenure::server
