#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenure::sys {

/// How many bytes the well-formed UTF-8 character at the front of `text` has; 0: none is there
/// (cut, overlong, a surrogate, beyond U+10FFFF).
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept;
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Appends `text` as a JSON string with its quotes. The result is valid JSON whatever the bytes
/// are: one that is no UTF-8 becomes the four characters \xNN. Where the way back matters, ask
/// is_utf8() first.
void append_json(std::string& out, std::string_view text);

/// Appends `text` so that it stays within its place on a line for people: bare if it is a plain
/// word, else in quotes; nothing in it can begin a line or speak to the terminal.
void append_plain(std::string& out, std::string_view text);

/// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace tenure::sys
