#pragma once

#include <filesystem>
#include <string_view>

#include <tenure/error.hpp>

#include "server/auth/token.hpp"

/// Secret that changes over HTTP require without users. A peer address proves nothing: all clients
/// of a local proxy or TCP relay have a loopback address. The ability to read a file of the server
/// proves more.
namespace tenure::server::http {

/// Name of the file in the data directory.
inline constexpr std::string_view secret_file = "http_secret";

/// Digest of the secret in the folder. Creates the file with 256 random bits and mode 0600 if it is
/// missing; a crash leaves the whole file or none.
/// `invalid_argument`: other users of the machine may access it, it is no regular file, or its text
/// is too short or too long for a secret. `unavailable`: the file cannot be read or written.
[[nodiscard]] Result<auth::Digest> open_secret(const std::filesystem::path& folder);

}  // namespace tenure::server::http
