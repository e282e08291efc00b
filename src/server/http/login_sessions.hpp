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
class LoginSessions {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::string_view cookie = "tenure_session";
  static constexpr std::chrono::hours life{12};
  static constexpr std::size_t all_max = 1000;
  static constexpr std::size_t of_token_max = 20;

  /// Starts a session and returns its secret.
  [[nodiscard]] std::string begin(const auth::Digest& token, Clock::time_point now);
  /// Token digest of the session; nullopt: unknown or expired.
  [[nodiscard]] std::optional<auth::Digest> find(std::string_view secret,
                                                 Clock::time_point now) const;
  void end(std::string_view secret);

  [[nodiscard]] std::size_t count() const noexcept { return sessions_.size(); }

 private:
  struct Login {
    auth::Digest token{};
    Clock::time_point began{};
  };
  void admit_overload_connection(const auth::Digest& token, Clock::time_point now);

  absl::flat_hash_map<auth::Digest, Login, absl::Hash<auth::Digest>, auth::DigestEqual> sessions_;
};

}  // namespace tenure::server::http
