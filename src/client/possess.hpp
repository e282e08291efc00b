#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <tenure/client/awaitable.hpp>
#include <tenure/error.hpp>

#include "client/acquire.hpp"
#include "client/lock_spec.hpp"

/// From a hold to the guard that a kind of lock hands out.
namespace tenure::detail {

template <class Kind>
[[nodiscard]] Result<Kind> possess(const std::shared_ptr<const LockSpec>& spec, Acquired acquired) {
  if (!acquired) {
    return std::unexpected(std::move(acquired).error());
  }
  return Kind(spec, *std::move(acquired));
}

template <class Kind>
[[nodiscard]] Result<Kind> possess(const std::shared_ptr<const LockSpec>& spec,
                                   const WaitLimits& timeout) {
  return possess<Kind>(spec, acquire(*spec, timeout));
}

template <class Kind>
[[nodiscard]] Awaitable<Kind> possess_async(std::shared_ptr<const LockSpec> spec,
                                            std::stop_token cancel) {
  return Awaitable<Kind>([spec = std::move(spec), cancel = std::move(cancel)](
                             Awaitable<Kind>::Done done) -> std::optional<Result<Kind>> {
    auto at_once =
        acquire_async(spec, cancel, [spec, done = std::move(done)](Acquired acquired) mutable {
          done(possess<Kind>(spec, std::move(acquired)));
        });
    return at_once ? std::optional(possess<Kind>(spec, *std::move(at_once))) : std::nullopt;
  });
}

}  // namespace tenure::detail
