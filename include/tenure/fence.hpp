#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>

namespace tenure {

namespace fence {
struct TokenCheck;
}

/// Largest token that a fence accepts, because databases store signed 64-bit integers.
inline constexpr FencingToken fencing_token_max{0x7FFF'FFFF'FFFF'FFFF};

/// Maximum length of a resource name in bytes.
inline constexpr std::size_t resource_bytes_max = 1024;

/// Reason why a fence rejected a token. The write must not happen.
struct FenceError {
  /// Each calls for a different next step of the writer.
  enum class Reason : std::uint8_t {
    stale,        ///< A newer token was admitted, so the hold is over: stop, or lock again.
    reused,       ///< admit_once() only: this token was admitted before, so the write is done.
    not_checked,  ///< The fence could not check the token: see `error`.
  };

  Reason reason = Reason::not_checked;  ///< Next step for the writer.
  FencingToken token{};                 ///< Token that was rejected.
  FencingToken highest{};               ///< Largest admitted token; 0 with not_checked.

  /// The same as an Error, for callers that return a Result: lease_lost if stale, invalid_argument
  /// if reused.
  Error error{.code = Errc::unavailable};

  friend bool operator==(const FenceError&, const FenceError&) = default;
};

/// `lease_lost: token 100 is stale: 101 was admitted for "accounts/42"`
[[nodiscard]] inline std::string to_string(const FenceError& error) {
  return to_string(error.error);
}

/// Outcome of a check. Write only if it has a value.
using FenceResult = std::expected<void, FenceError>;

/// How a Fence behaves.
struct FenceOptions {
  /// Maximum number of resources; one more is rejected with resource_exhausted. The fence never
  /// forgets a resource, because that would readmit its old tokens. Each costs its name and 100
  /// bytes.
  std::size_t resources_max = 1'000'000;
};

/// Fence for storage in memory: keeps the largest admitted token of each resource and rejects
/// smaller ones. A holder that lost its lock during a pause, and has not noticed, then cannot
/// overwrite the writes of its successor.
///
/// The fence is part of the storage: protect it by the mutex of the data, and hold that mutex from
/// the check to the end of the write. Without it, a newer holder could write in between and be
/// overwritten.
///
///     const std::lock_guard guard(mutex);
///     if (const auto admitted = fence.admit("accounts/42", token); !admitted) {
///       return std::unexpected(admitted.error().error);
///     }
///     balance = 70;
///
/// The other fences keep the token in a database, in the transaction of the write:
/// fence_sqlite.hpp, fence_postgresql.hpp, fence_redis.hpp.
///
/// Not thread safe, for the reason above. A copy has the tokens of the original.
/// INVARIANT: the highest token of a resource never decreases.
class Fence {
 public:
  /// A fence without tokens.
  explicit Fence(FenceOptions options = {}) : options_(options) {}

  /// Admits and records `token` unless a larger one was admitted for `resource`. The same token is
  /// admitted any number of times, because a holder usually writes more than once.
  ///
  /// A resource name has 1 to resource_bytes_max bytes of any value; a token is 1 to
  /// fencing_token_max. Anything else is rejected as not_checked with invalid_argument.
  [[nodiscard]] FenceResult admit(std::string_view resource, FencingToken token);

  /// As admit(), but also rejects a repeated token: for one write per grant that must not be
  /// applied twice.
  [[nodiscard]] FenceResult admit_once(std::string_view resource, FencingToken token);

  /// Largest token admitted for `resource`; 0 if there is none.
  [[nodiscard]] FencingToken highest(std::string_view resource) const;

 private:
  FenceResult decide(const fence::TokenCheck& check);

  FenceOptions options_;
  std::map<std::string, FencingToken, std::less<>> highest_;
};

}  // namespace tenure
