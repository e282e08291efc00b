#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "server/auth/token.hpp"

namespace tenure::server::http {

/// Login sessions of browsers. The cookie contains a random secret that stands for the token; only
/// digests of both are stored. Sessions expire after `life`; beyond a limit the oldest is evicted,
/// first among those with the same token. HTTP thread only.
///
/// A session never outlives its token: each request authenticates the digest of the token again, so
/// a removed user is locked out at once. The sessions are in memory only; a restart ends them.
class LoginSessions {
 public:
  using Clock = std::chrono::steady_clock;
  /// Name of the cookie.
  static constexpr std::string_view cookie = "tenure_session";
  static constexpr std::chrono::hours life{12};
  /// Bounds the memory against a client that logs in repeatedly.
  static constexpr std::size_t all_max = 1000;
  /// One user evicts its own sessions first, not those of others.
  static constexpr std::size_t of_token_max = 20;

  /// Starts a session and returns its secret.
  [[nodiscard]] std::string begin(const auth::Digest& token, Clock::time_point now);
  /// Token digest of the session; nullopt: unknown or expired.
  [[nodiscard]] std::optional<auth::Digest> find(std::string_view secret,
                                                 Clock::time_point now) const;
  /// No effect for an unknown session.
  void end(std::string_view secret);

  [[nodiscard]] std::size_t count() const noexcept { return sessions_.size(); }

 private:
  struct Login {
    auth::Digest token{};
    Clock::time_point began{};
  };
  /// Evicts expired sessions, then the oldest if a limit leaves no room for one more session.
  void evict_for(const auth::Digest& token, Clock::time_point now);

  /// Keyed by the digest of the cookie secret. The comparison takes constant time, so response
  /// times reveal nothing about stored secrets.
  absl::flat_hash_map<auth::Digest, Login, absl::Hash<auth::Digest>, auth::DigestEqual> sessions_;
};

}  // namespace tenure::server::http
