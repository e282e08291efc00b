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

struct User {
  std::string name{};
  Rights rights{};
};

/// All users, by what they show, at one moment. Never changes once it is made. Thread safe.
class Rulebook {
 public:
  /// What the file says of a user.
  struct Entry {
    std::string name{};
    std::vector<Digest> tokens{};
    std::vector<std::string> certificates{};  ///< Common names and alternative names.
    std::vector<Rule> rules{};
  };

  /// `invalid_argument`: a token or a certificate is of two users, or a user stands there twice.
  [[nodiscard]] static Result<Rulebook> make(std::vector<Entry> entries);

  /// Null: nobody has it.
  [[nodiscard]] const User* by_token(const Digest& digest) const;
  /// The user that has one of these names. Null: none has, or two do.
  [[nodiscard]] const User* by_certificate(std::span<const std::string> names) const;

  [[nodiscard]] std::size_t users() const noexcept { return users_.size(); }

 private:
  std::map<std::string, std::unique_ptr<const User>, std::less<>> users_;
  absl::flat_hash_map<Digest, const User*, absl::Hash<Digest>, SameDigest> tokens_;
  absl::flat_hash_map<std::string, const User*> certificates_;
};

/// Reads the file of users. `invalid_argument` tells all that is wrong, a line for each, with its
/// place: no part of a file that has a mistake counts.
[[nodiscard]] Result<Rulebook> read_rulebook(std::string_view text, std::string_view name);
[[nodiscard]] Result<Rulebook> read_rulebook_file(const std::filesystem::path& file);

}  // namespace tenure::server::auth
