#include "server/auth/policy.hpp"

#include <utility>

namespace tenure::server::auth {

Result<Policy> Policy::make(std::vector<Entry> entries) {
  Policy made;
  for (auto& entry : entries) {
    auto [it, is_new] = made.users_.try_emplace(entry.name);
    if (!is_new) {
      return fail(Errc::invalid_argument, "user " + entry.name + " is defined twice");
    }
    it->second = std::make_unique<const User>(
        User{.name = entry.name, .rights = Rights(std::move(entry.rules))});
    const auto* user = it->second.get();
    const auto of_two = [&](const User& other, const char* what) {
      return fail(Errc::invalid_argument, user->name + " and " + other.name + " share a " + what);
    };
    for (const auto& digest : entry.tokens) {
      // A repeated token of the same user is harmless.
      const auto& holder = *made.tokens_.try_emplace(digest, user).first->second;
      if (&holder != user) {
        return of_two(holder, "token");
      }
    }
    for (auto& name : entry.certificates) {
      const auto& holder = *made.certificates_.try_emplace(std::move(name), user).first->second;
      if (&holder != user) {
        return of_two(holder, "certificate name");
      }
    }
  }
  return made;
}

const User* Policy::find_by_token(const Digest& digest) const {
  const auto it = tokens_.find(digest);
  return it == tokens_.end() ? nullptr : it->second;
}

const User* Policy::find_by_certificate(std::span<const std::string> names) const {
  const User* found = nullptr;
  for (const auto& name : names) {
    const auto it = certificates_.find(name);
    if (it == certificates_.end()) {
      continue;
    }
    // Ambiguous: the rights of one user must not depend on the order of names in a certificate.
    if (found != nullptr && found != it->second) {
      return nullptr;
    }
    found = it->second;
  }
  return found;
}

}  // namespace tenure::server::auth
