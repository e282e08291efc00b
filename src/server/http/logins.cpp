#include "server/http/logins.hpp"

#include <algorithm>

namespace tenure::server::http {

std::string Logins::begin(const auth::Digest& token, Clock::time_point now) {
  make_room(token, now);
  auto secret = auth::make_token();
  logins_.emplace(auth::digest_of(secret), Login{.token = token, .began = now});
  return secret;
}

std::optional<auth::Digest> Logins::find(std::string_view secret, Clock::time_point now) const {
  const auto it = logins_.find(auth::digest_of(secret));
  if (it == logins_.end() || now - it->second.began >= life) {
    return std::nullopt;
  }
  return it->second.token;
}

void Logins::end(std::string_view secret) {
  logins_.erase(auth::digest_of(secret));
}

void Logins::make_room(const auth::Digest& token, Clock::time_point now) {
  absl::erase_if(logins_, [&](const auto& login) { return now - login.second.began >= life; });
  const auto is_same = [&](const auto& login) {
    return auth::DigestEqual{}(login.second.token, token);
  };
  const auto same = static_cast<std::size_t>(std::ranges::count_if(logins_, is_same));
  if (same < of_token_max && logins_.size() < all_max) {
    return;
  }
  auto oldest = logins_.end();
  for (auto it = logins_.begin(); it != logins_.end(); ++it) {
    const bool counts = same < of_token_max || is_same(*it);
    if (counts && (oldest == logins_.end() || it->second.began < oldest->second.began)) {
      oldest = it;
    }
  }
  logins_.erase(oldest);
}

}  // namespace tenure::server::http
