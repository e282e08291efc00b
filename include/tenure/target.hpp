#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>

namespace tenure {

/// 64-bit keys of a space, such as the rows of an index. Two of them conflict only inside one
/// space; one key is KeyRange::point(key), so points and ranges of a space see each other.
struct KeysOf {
  ResourceId space;  ///< Which space.
  KeyRange range;    ///< Which keys of it.
};

/// Byte-string keys of a space. They never meet the 64-bit keys of a space with the same number.
struct BytesOf {
  ResourceId space;  ///< Which space.
  BytesRange range;  ///< Which keys of it.
};

/// What can be locked: a resource by number, a resource by name (1 to 1,024 bytes), or keys of a
/// space. The four kinds never conflict with each other.
using Target = std::variant<ResourceId, std::string_view, KeysOf, BytesOf>;

/// The longest name of a resource, in bytes.
inline constexpr std::size_t name_bytes_max = 1024;

/// The deepest path of lock_path().
inline constexpr std::size_t path_depth_max = 64;

/// `resource 7`, `"db/users"`, `keys [1, 9] of space 3`, `keys ["a", "b") of space 3`.
[[nodiscard]] std::string to_string(const Target& target);

}  // namespace tenure
