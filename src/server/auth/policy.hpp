#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include <tenure/error.hpp>

#include "server/auth/rights.hpp"
#include "server/auth/token.hpp"

namespace tenure::server::auth {

/// User with its rights. The address is stable for the lifetime of the policy.
struct User {
  std::string name{};
  Rights rights{};
};

/// All users with their credentials and rights. Immutable snapshot of the users file; thread safe.
class Policy {
 public:
  /// Entry of a user in the users file.
  struct Entry {
    std::string name{};
    std::vector<Digest> tokens{};
    std::vector<std::string>
        certificates{};  ///< Common names and alternative names of client certificates.
    std::vector<Rule> rules{};
  };

  /// `invalid_argument`: two users share a token or a certificate name, or a user is defined twice.
  [[nodiscard]] static Result<Policy> make(std::vector<Entry> entries);

  /// User with this token; null: none.
  [[nodiscard]] const User* find_by_token(const Digest& digest) const;
  /// User with one of these certificate names; null: none, or two different users match.
  [[nodiscard]] const User* find_by_certificate(std::span<const std::string> names) const;

  [[nodiscard]] std::size_t users() const noexcept { return users_.size(); }

 private:
  /// Users by name. Behind pointers, because the indexes below refer to them and the policy is
  /// movable.
  std::map<std::string, std::unique_ptr<const User>, std::less<>> users_;
  absl::flat_hash_map<Digest, const User*, absl::Hash<Digest>, DigestEqual> tokens_;
  absl::flat_hash_map<std::string, const User*> certificates_;
};

/// Parses the users file. `invalid_argument` lists all errors, one line each, with their positions.
/// An invalid file is rejected as a whole.
[[nodiscard]] Result<Policy> parse_policy(std::string_view text, std::string_view name);
[[nodiscard]] Result<Policy> load_policy_file(const std::filesystem::path& file);

}  // namespace tenure::server::auth
