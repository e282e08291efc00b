#include "server/auth/access.hpp"

namespace tenure::server::auth {

Error Access::denial(Verb verb, std::string_view name) const {
  const auto who = user_ == nullptr ? std::string("an unauthenticated client") : user_->name;
  const auto* rule = user_ == nullptr ? nullptr : user_->rights.rule_for(name);
  // Names the rule that decided, so that an operator can correct the users file without guessing.
  auto detail = who + " may not " + std::string(to_string(verb)) + " \"" + std::string(name) + "\"";
  detail += rule == nullptr ? ": no rule of the user has a prefix of this name"
                            : ": the rule for prefix \"" + rule->prefix + "\" grants " +
                                  std::string(to_string(rule->level));
  return {.code = Errc::permission_denied, .detail = std::move(detail)};
}

std::size_t redact_unreadable(const Access& access, std::vector<core::CycleStep>& cycle) {
  constexpr std::string_view hidden = "(hidden)";
  std::size_t count = 0;
  for (auto& step : cycle) {
    if (!access.may(Verb::read, step.resource.name.view())) {
      // Lease and request ids stay: they contain no name.
      step.resource.name = hidden;
      step.owner = hidden;
      ++count;
    }
  }
  return count;
}

std::string qualified_client(const User& user, std::string_view client) {
  return user.name + '/' + std::string(client);
}

bool is_owned_by(const User& user, std::string_view client) {
  // User names contain no '/', so the prefix up to it is unambiguous.
  return client.size() > user.name.size() && client.starts_with(user.name) &&
         client[user.name.size()] == '/';
}

}  // namespace tenure::server::auth
