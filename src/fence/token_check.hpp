#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/ids.hpp>

namespace tenure::fence {

/// Treatment of a token that equals the largest admitted one: admit() or admit_once().
enum class Repeated : std::uint8_t { admit, reject };

/// Input of a check, the same for all fences.
struct TokenCheck {
  std::string_view resource;  ///< Name of the resource.
  FencingToken token;         ///< Token of the writer.
  Repeated repeated;          ///< Treatment of an equal token.
};

/// Error of a check that no fence can decide, such as an empty name or token 0; std::nullopt if the
/// input is valid.
[[nodiscard]] std::optional<Error> validate(const TokenCheck& check);
/// Checks the name only, for queries.
[[nodiscard]] std::optional<Error> validate(std::string_view resource);

/// Error of a table name, or std::nullopt. The name becomes part of SQL text, so only characters
/// that need no quotes in any database are accepted.
[[nodiscard]] std::optional<Error> validate_table(std::string_view name);

/// The fencing rule. `highest` is the largest admitted token, 0 if there is none. Success means
/// that the caller may store the token and write; otherwise `stale` or `reused`.
[[nodiscard]] FenceResult decide(const TokenCheck& check, FencingToken highest);

/// Result for a database that did not store the token and reports `highest`. Never an admission: a
/// token that is not stored cannot reject smaller ones later.
[[nodiscard]] FenceResult not_stored(const TokenCheck& check, FencingToken highest);

/// Result of a check that failed. The write must not happen, because a newer holder may exist.
[[nodiscard]] FenceResult not_checked(const TokenCheck& check, Error why);

/// Parses a token as databases return it: decimal digits, 1 to fencing_token_max.
[[nodiscard]] std::optional<FencingToken> token_from(std::string_view digits);

}  // namespace tenure::fence
