#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>

namespace tenure {

/// Range of 64-bit keys in a space, such as rows of an index. Ranges conflict only within one
/// space. A single key is KeyRange::point(key), so it conflicts with ranges that contain it.
struct KeysOf {
  ResourceId space;  ///< Space of the keys.
  KeyRange range;    ///< Keys in the space.
};

/// Range of byte-string keys in a space. Never conflicts with 64-bit keys, even of a space with the
/// same id.
struct BytesOf {
  ResourceId space;  ///< Space of the keys.
  BytesRange range;  ///< Keys in the space.
};

/// What a transaction can lock: a resource by number, a resource by name (1 to 1,024 bytes), or
/// keys of a space. The four kinds never conflict with each other.
using Target = std::variant<ResourceId, std::string_view, KeysOf, BytesOf>;

/// Maximum length of a resource name in bytes.
inline constexpr std::size_t name_bytes_max = 1024;

/// Maximum number of steps in a path of Transaction::lock_path().
inline constexpr std::size_t path_depth_max = 64;

/// `resource 7`, `"db/users"`, `keys [1, 9] of space 3`, `keys ["a", "b") of space 3`.
[[nodiscard]] std::string to_string(const Target& target);

}  // namespace tenure
