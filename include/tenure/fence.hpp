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
struct Question;
}

/// The largest token that a fence takes: databases count in signed 64 bits.
inline constexpr FencingToken fencing_token_max{0x7FFF'FFFF'FFFF'FFFF};

/// The longest name of a resource.
inline constexpr std::size_t resource_bytes_max = 1024;

/// Why a token was not admitted. The write that it stood for must not happen.
struct Refusal {
  /// Each is a different thing the writer should do next.
  enum class Reason : std::uint8_t {
    stale,        ///< A newer holder has been here, so our hold is over: stop, or lock anew.
    reused,       ///< By admit_once() only: this very token has been here. It was done before.
    not_checked,  ///< The fence could not look: `error` says why, and what to do.
  };

  Reason reason = Reason::not_checked;  ///< What to do next.
  FencingToken token{};                 ///< The one that was shown.
  FencingToken highest{};               ///< The newest that has been here; 0 with not_checked.

  /// For handing on as the error of a Result: lease_lost if stale, invalid_argument if reused.
  Error error{.code = Errc::unavailable};

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

/// `lease_lost: token 100 is stale: 101 has been at "accounts/42"`
[[nodiscard]] inline std::string to_string(const Refusal& refusal) {
  return to_string(refusal.error);
}

/// What a fence answers. Only `if (admitted)` may be followed by the write.
using Admission = std::expected<void, Refusal>;

/// How a Fence behaves.
struct FenceOptions {
  /// How many resources are remembered; one more is refused with resource_exhausted. None is ever
  /// forgotten, for a forgotten one would let its dead holders in; each costs its name and 100
  /// bytes.
  std::size_t resources_max = 1'000'000;
};

/// The storage side of fencing, for storage in memory: remembers the newest token that has been at
/// each resource, and refuses older ones. So a holder that was paused, and lost its lock without
/// knowing, cannot overwrite what its successor wrote.
///
/// The fence is part of the storage: keep it beside what it protects, under the same mutex, and
/// hold that mutex from the question to the end of the write. If it were let go between them, a
/// newer holder could write in the gap, and be overwritten.
///
///     const std::lock_guard guard(mutex);
///     if (const auto admitted = fence.admit("accounts/42", token); !admitted) {
///       return std::unexpected(admitted.error().error);
///     }
///     balance = 70;
///
/// The other forms keep the token in a database, in the transaction of the write:
/// fence_sqlite.hpp, fence_postgresql.hpp, fence_redis.hpp.
///
/// Not thread-safe, for the reason above. A copy remembers what the original did.
/// INVARIANT: the highest token of a resource never decreases.
class Fence {
 public:
  /// One that has seen no token.
  explicit Fence(FenceOptions options = {}) : options_(options) {}

  /// Admits `token` unless a newer one has been at `resource`, and remembers it. The same token is
  /// admitted as often as it comes: a holder usually writes more than once.
  ///
  /// A resource has 1 to resource_bytes_max bytes of any value, a token is 1 to fencing_token_max;
  /// anything else is refused as not_checked, with invalid_argument.
  [[nodiscard]] Admission admit(std::string_view resource, FencingToken token);

  /// As admit(), and refuses the same token too: for one write per grant, where a repetition must
  /// not count twice.
  [[nodiscard]] Admission admit_once(std::string_view resource, FencingToken token);

  /// The newest token that has been at `resource`; 0 if none has.
  [[nodiscard]] FencingToken highest(std::string_view resource) const;

 private:
  Admission decide(const fence::Question& question);

  FenceOptions options_;
  std::map<std::string, FencingToken, std::less<>> highest_;
};

}  // namespace tenure
