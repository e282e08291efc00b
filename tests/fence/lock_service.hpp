#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include <tenure/ids.hpp>

#include "core/state_machine.hpp"

namespace tenure::test {

/// The state machine of the lock service, with a clock that the test moves.
class LockService {
 public:
  static constexpr std::chrono::seconds ttl{30};

  /// The token of the grant, or std::nullopt if another owner holds the lock.
  [[nodiscard]] std::optional<FencingToken> try_lock(const std::string& name) {
    const core::LeaseId lease{++last_lease_};
    apply(core::GrantLease{.id = lease, .ttl = ttl});
    const auto applied = apply(core::Acquire{.lease = lease,
                                             .request = core::RequestId{1},
                                             .items = {{.name = name, .claim = core::Whole{}}},
                                             .queue = core::Queue::skip});
    if (const auto* granted = std::get_if<core::Granted>(&applied.outcome)) {
      return FencingToken{granted->token.get()};
    }
    return std::nullopt;
  }
  /// Advances the clock without renewals.
  void pass(std::chrono::seconds time) {
    now_ += time;
    apply(core::Tick{});
  }

 private:
  core::Applied apply(const core::Command& command) {
    return machine_.apply(command, {.time = now_});
  }

  core::StateMachine machine_;
  core::ClusterTime now_{};
  std::uint64_t last_lease_ = 0;
};

}  // namespace tenure::test
