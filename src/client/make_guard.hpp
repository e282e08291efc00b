#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include <tenure/client/awaitable.hpp>
#include <tenure/error.hpp>

#include "client/acquire.hpp"
#include "client/factory.hpp"
#include "client/lock_spec.hpp"

/// Conversion of an acquired hold to the guard type of the lock.
namespace tenure::detail {

template <class Kind>
[[nodiscard]] Result<Kind> make_guard(const std::shared_ptr<const LockSpec>& spec,
                                      Acquired acquired) {
  if (!acquired) {
    return std::unexpected(std::move(acquired).error());
  }
  // The guard gets a reference to the specification, which keeps the session alive.
  return Factory::make<Kind>(spec, *std::move(acquired));
}

template <class Kind>
[[nodiscard]] Result<Kind> make_guard(const std::shared_ptr<const LockSpec>& spec,
                                      const WaitLimits& wait) {
  return make_guard<Kind>(spec, acquire(*spec, wait));
}

template <class Kind>
[[nodiscard]] Awaitable<Kind> make_guard_async(std::shared_ptr<const LockSpec> spec,
                                               std::stop_token cancel) {
  return Awaitable<Kind>([spec = std::move(spec), cancel = std::move(cancel)](
                             Awaitable<Kind>::Done done) -> std::optional<Result<Kind>> {
    // A value means that the request is settled, and `done` is never called; std::nullopt suspends
    // the coroutine until then.
    auto at_once =
        acquire_async(spec, cancel, [spec, done = std::move(done)](Acquired acquired) mutable {
          done(make_guard<Kind>(spec, std::move(acquired)));
        });
    return at_once ? std::optional(make_guard<Kind>(spec, *std::move(at_once))) : std::nullopt;
  });
}

}  // namespace tenure::detail
