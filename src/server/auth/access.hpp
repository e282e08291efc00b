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
#include "server/auth/rulebook.hpp"

namespace tenure::server::auth {

/// What somebody may do by the rules of one moment. A value. Thread safe.
class Access {
 public:
  /// Where there are no users everybody may do everything.
  [[nodiscard]] static Access everything() { return {}; }
  /// Null: nobody, who may do nothing.
  Access(std::shared_ptr<const Rulebook> rules, const User* user)
      : rules_(std::move(rules)), user_(user) {}

  [[nodiscard]] bool is_everything() const noexcept { return rules_ == nullptr; }
  [[nodiscard]] bool is_known() const noexcept { return is_everything() || user_ != nullptr; }
  /// Null: nobody, or everybody.
  [[nodiscard]] const User* user() const noexcept { return user_; }

  [[nodiscard]] bool may(Verb verb, std::string_view name) const {
    return is_everything() || (user_ != nullptr && user_->rights.may(verb, name));
  }
  [[nodiscard]] bool may_somewhere(Verb verb, std::string_view prefix = {}) const {
    return is_everything() || (user_ != nullptr && user_->rights.may_somewhere(verb, prefix));
  }
  /// By the rule for "", which is for whatever has no name: leases of others, the cluster.
  [[nodiscard]] bool may_overall(Verb verb) const { return may(verb, {}); }
  /// As Rights::skip.
  [[nodiscard]] std::optional<std::string> skip(std::string_view name) const {
    return user_ == nullptr ? std::nullopt : user_->rights.skip(name);
  }

  /// `permission_denied`: who may not do what, and which rule says so.
  [[nodiscard]] Error denial(Verb verb, std::string_view name) const;

 private:
  Access() = default;

  std::shared_ptr<const Rulebook> rules_;  ///< Null: there are no users here.
  const User* user_ = nullptr;
};

/// The first lock at or behind `it` that may be read; takes as long as there are rules, not locks.
template <class Locks, class Position>
[[nodiscard]] Position first_readable(const Locks& locks, Position it, const Access& access) {
  while (it != locks.end() && !access.may(Verb::read, it->first.name.view())) {
    const auto next = access.skip(it->first.name.view());
    it = next ? locks.lower_bound(core::PlaceView{.name = *next}) : locks.end();
  }
  return it;
}

/// Puts the names and owners out of a cycle of waits that may not be read; how many steps that
/// were.
std::size_t hide_unreadable(const Access& access, std::vector<core::CycleStep>& cycle);

/// A lease is its user's, whose name stands before the '/' in the name of its client.
[[nodiscard]] std::string client_of(const User& user, std::string_view client);
[[nodiscard]] bool is_of(const User& user, std::string_view client);

}  // namespace tenure::server::auth
