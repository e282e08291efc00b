#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "server/auth/token.hpp"

namespace tenure::server::http {

/// Who has logged in with a browser: a secret of each, which its cookie says, stands for the token
/// that was shown. Only digests of both are kept. They end after a while, and are no more than a
/// number: the oldest gives way, first of the same token. Of HTTP's thread.
class Logins {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::string_view cookie = "tenure_session";
  static constexpr std::chrono::hours life{12};
  static constexpr std::size_t all_max = 1000;
  static constexpr std::size_t of_token_max = 20;

  /// The secret of a new one.
  [[nodiscard]] std::string begin(const auth::Digest& token, Clock::time_point now);
  /// The token that was shown; nothing: it is over, or never was.
  [[nodiscard]] std::optional<auth::Digest> find(std::string_view secret,
                                                 Clock::time_point now) const;
  void end(std::string_view secret);

  [[nodiscard]] std::size_t count() const noexcept { return logins_.size(); }

 private:
  struct Login {
    auth::Digest token{};
    Clock::time_point began{};
  };
  void make_room(const auth::Digest& token, Clock::time_point now);

  absl::flat_hash_map<auth::Digest, Login, absl::Hash<auth::Digest>, auth::DigestEqual> logins_;
};

}  // namespace tenure::server::http
