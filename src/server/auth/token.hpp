#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenure::server::auth {

/// SHA-256 of a token. A token is 256 random bits, so that nobody finds it by its digest: no salt
/// and no slow hash are needed, as they are for what people choose.
using Digest = std::array<std::uint8_t, 32>;

[[nodiscard]] Digest digest_of(std::string_view token);
/// "sha256:" and 64 hexadecimal digits, as it stands in the file.
[[nodiscard]] std::string print(const Digest& digest);
[[nodiscard]] std::optional<Digest> digest_from(std::string_view text);

/// A new one: "tenure_" and 64 hexadecimal digits.
[[nodiscard]] std::string make_token();

/// Takes as long for digests that differ in the first bit as for those that are the same.
struct SameDigest {
  [[nodiscard]] bool operator()(const Digest& left, const Digest& right) const noexcept;
};

/// The token in `Authorization: Bearer …`; nothing if it is something else.
[[nodiscard]] std::optional<std::string_view> bearer_token(std::string_view field);

}  // namespace tenure::server::auth
