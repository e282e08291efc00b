#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/client/options.hpp>
#include <tenure/error.hpp>

#include "backends/backend.hpp"

namespace tenure::detail {

class Session;
class SharedLease;

/// What a lock object is: what it asks for, how, and of whom. Shared by its copies and its guards,
/// all of which keep the session alive. Immutable.
struct LockSpec {
  std::shared_ptr<Session> session;
  std::shared_ptr<const backends::AcquireSpec> acquire_spec;
  std::chrono::milliseconds ttl{};
  int renewals_per_ttl = 0;
  std::optional<std::chrono::milliseconds> max_wait{};
  std::shared_ptr<SharedLease> lease{};  ///< Null: each hold has its own.
  std::shared_ptr<const std::function<void(const AtRisk&)>> on_at_risk{};
  std::optional<Error> error{};  ///< Why nothing can come of it.
  std::string name{};            ///< For people.
};

/// Never fails: what is wrong stands in LockSpec::error.
[[nodiscard]] std::shared_ptr<const LockSpec> make_spec(
    std::shared_ptr<Session> session, std::vector<backends::Item> items, LockOptions options,
    backends::LockKind kind = backends::LockKind::mutex);

/// What is wrong with a ttl, if anything.
[[nodiscard]] std::optional<Error> check_ttl(std::chrono::milliseconds ttl, int renewals_per_ttl,
                                             const backends::Limits& limits);

}  // namespace tenure::detail
