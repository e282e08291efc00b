#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenure::server::auth {

/// SHA-256 of a token. A token is 256 random bits, so a digest cannot be inverted by guessing; the
/// salt and slow hash of passwords are unnecessary.
using Digest = std::array<std::uint8_t, 32>;

[[nodiscard]] Digest digest_of(std::string_view token);
/// "sha256:" and 64 hexadecimal digits, the form in the users file.
[[nodiscard]] std::string print(const Digest& digest);
/// Inverse of print(); nullopt: another notation.
[[nodiscard]] std::optional<Digest> digest_from(std::string_view text);

/// Generates a token: "tenure_" and 64 hexadecimal digits.
[[nodiscard]] std::string make_token();

/// Constant-time comparison, so that response times do not reveal a digest.
struct DigestEqual {
  [[nodiscard]] bool operator()(const Digest& left, const Digest& right) const noexcept;
};

/// Token in `Authorization: Bearer …`; nullopt: another scheme.
/// The scheme is case-insensitive (RFC 9110). The result refers to `field`.
[[nodiscard]] std::optional<std::string_view> bearer_token(std::string_view field);

}  // namespace tenure::server::auth
