#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenure::sys {

/// Number of bytes of the well-formed UTF-8 character at the front of `text`; 0 if there is none
/// (truncated, overlong, a surrogate, beyond U+10FFFF).
[[nodiscard]] std::size_t utf8_length(std::string_view text) noexcept;
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Appends `text` as a JSON string with its quotes. The result is valid JSON whatever the bytes
/// are: a byte that is no UTF-8 becomes the four characters \xNN. Check is_utf8() first if the
/// conversion has to be reversible.
void append_json(std::string& out, std::string_view text);

/// Appends `text` to a human-readable line: bare if it is a plain word, else quoted and escaped, so
/// that it can neither begin a new line nor control the terminal.
void append_plain(std::string& out, std::string_view text);

/// Base64 as in RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace tenure::sys
