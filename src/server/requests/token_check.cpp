#include "server/requests/token_check.hpp"

namespace tenure::server {

TokenCheck check_token(const core::State& state, const core::Resource& resource,
                       core::FencingToken token) {
  TokenCheck check{.verdict = TokenVerdict::ended};
  if (const auto* lock = state.locks.find(resource)) {
    if (const auto holds = lock->holds(); !holds.empty()) {
      // Holds are sorted by token, so the last one is the newest.
      check.newest = holds.back();
    }
    if (lock->has_holder(token)) {
      check.holder = state.locks.find(token);
      check.verdict = TokenVerdict::held;
      return check;
    }
  }
  // A token is the revision of its grant.
  if (token.get() > state.revision.get()) {
    check.verdict = TokenVerdict::never_given;
  } else if (check.newest > token) {
    check.verdict = TokenVerdict::superseded;
  }
  return check;
}

}  // namespace tenure::server
