#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/error.hpp>

#include "core/item.hpp"
#include "core/outcome.hpp"
#include "server/auth/policy.hpp"

namespace tenure::server::auth {

/// Effective rights of one principal under one version of the policy. A value; holds the policy
/// alive. Thread safe.
///
/// Answers are consistent with each other, because they come from one immutable policy. Taking a
/// new Access for each request makes a reload effective.
class Access {
 public:
  /// Rights without a policy: everything is allowed.
  [[nodiscard]] static Access unrestricted() { return {}; }
  /// Rights of `user` under `rules`. Null `user`: unauthenticated, nothing is allowed.
  Access(std::shared_ptr<const Policy> rules, const User* user)
      : rules_(std::move(rules)), user_(user) {}

  [[nodiscard]] bool is_unrestricted() const noexcept { return rules_ == nullptr; }
  [[nodiscard]] bool is_authenticated() const noexcept {
    return is_unrestricted() || user_ != nullptr;
  }
  /// Null: unauthenticated, or no policy is in force.
  [[nodiscard]] const User* user() const noexcept { return user_; }

  [[nodiscard]] bool may(Verb verb, std::string_view name) const {
    return is_unrestricted() || (user_ != nullptr && user_->rights.may(verb, name));
  }
  [[nodiscard]] bool may_any(Verb verb, std::string_view prefix = {}) const {
    return is_unrestricted() || (user_ != nullptr && user_->rights.may_any(verb, prefix));
  }
  /// Decided by the rule for the empty prefix, which governs requests without a lock name: leases
  /// of other users, cluster administration.
  [[nodiscard]] bool may_globally(Verb verb) const { return may(verb, {}); }
  /// Next name that can have other rights; see Rights::skip.
  [[nodiscard]] std::optional<std::string> skip(std::string_view name) const {
    return user_ == nullptr ? std::nullopt : user_->rights.skip(name);
  }

  /// `permission_denied`, with the user, the denied action and the rule that decided.
  [[nodiscard]] Error denial(Verb verb, std::string_view name) const;

 private:
  Access() = default;

  std::shared_ptr<const Policy> rules_;  ///< Policy in force; null: none.
  /// User in rules_, which keeps it alive.
  const User* user_ = nullptr;
};

/// First lock at or after `it` that `access` may read. The cost depends on the number of rules, not
/// of locks.
template <class Locks, class Position>
[[nodiscard]] Position first_readable(const Locks& locks, Position it, const Access& access) {
  while (it != locks.end() && !access.may(Verb::read, it->first.name.view())) {
    const auto next = access.skip(it->first.name.view());
    it = next ? locks.lower_bound(core::ResourceView{.name = *next}) : locks.end();
  }
  return it;
}

/// Redacts names and owners the principal may not read; returns the number of redacted steps.
/// The steps stay: the client sees that a cycle exists and how long it is, which it needs to react.
std::size_t redact_unreadable(const Access& access, std::vector<core::CycleStep>& cycle);

/// Client name of a lease of `user`: the user name, '/', the label that the client chose. Ties a
/// lease to its user.
[[nodiscard]] std::string qualified_client(const User& user, std::string_view client);
/// Whether `client` is a result of qualified_client() for this user.
[[nodiscard]] bool is_owned_by(const User& user, std::string_view client);

}  // namespace tenure::server::auth
