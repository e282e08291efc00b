#include "server/http/login_sessions.hpp"

#include <algorithm>

namespace tenure::server::http {

std::string LoginSessions::begin(const auth::Digest& token, Clock::time_point now) {
  evict_for(token, now);
  auto secret = auth::make_token();
  sessions_.emplace(auth::digest_of(secret), Login{.token = token, .began = now});
  return secret;
}

std::optional<auth::Digest> LoginSessions::find(std::string_view secret,
                                                Clock::time_point now) const {
  // Only the digest is stored, so a memory dump contains no usable cookie.
  const auto it = sessions_.find(auth::digest_of(secret));
  if (it == sessions_.end() || now - it->second.began >= life) {
    return std::nullopt;
  }
  return it->second.token;
}

void LoginSessions::end(std::string_view secret) {
  sessions_.erase(auth::digest_of(secret));
}

void LoginSessions::evict_for(const auth::Digest& token, Clock::time_point now) {
  // Expired sessions are removed at the next login only; find() ignores them until then.
  absl::erase_if(sessions_, [&](const auto& login) { return now - login.second.began >= life; });
  const auto is_same = [&](const auto& login) {
    return auth::DigestEqual{}(login.second.token, token);
  };
  const auto same = static_cast<std::size_t>(std::ranges::count_if(sessions_, is_same));
  if (same < of_token_max && sessions_.size() < all_max) {
    return;
  }
  auto oldest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    // If the limit per token is reached, only sessions of this token are candidates.
    const bool counts = same < of_token_max || is_same(*it);
    if (counts && (oldest == sessions_.end() || it->second.began < oldest->second.began)) {
      oldest = it;
    }
  }
  sessions_.erase(oldest);
}

}  // namespace tenure::server::http
