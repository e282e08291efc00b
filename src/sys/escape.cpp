#include "sys/escape.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tenure::sys {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

std::uint8_t byte_at(std::string_view text, std::size_t index) {
  return static_cast<std::uint8_t>(text[index]);
}

void append_hex(std::string& out, std::string_view lead, std::uint8_t byte) {
  out += lead;
  out += hex_digits[byte >> 4U];
  out += hex_digits[byte & 15U];
}

/// Character after the backslash of a short escape; 0 if there is none.
char short_escape(std::uint8_t byte) {
  switch (byte) {
    case '"': return '"';
    case '\\': return '\\';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
  }
}

/// U+0080 to U+009F move the cursor of some terminals.
bool is_control(std::string_view character) {
  const auto first = byte_at(character, 0);
  return first < 0x20 || first == 0x7F || (first == 0xC2 && byte_at(character, 1) < 0xA0);
}

/// U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 reorder the text.
bool is_reordering(std::string_view character) {
  return character == "\u200E" || character == "\u200F" ||
         (character >= "\u202A" && character <= "\u202E" && character.size() == 3) ||
         (character >= "\u2066" && character <= "\u2069" && character.size() == 3);
}

bool is_plain_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c > ' ' && c < 0x7F && c != '"' && c != '\\' && c != '=';
  });
}

}  // namespace

std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) {
    return 0;
  }
  const auto first = byte_at(text, 0);
  if (first < 0x80) {
    return 1;
  }
  // The Unicode Standard, table 3-7: the second byte has a narrower range after some first bytes.
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || text.size() < length) {
    return 0;
  }
  const auto second = byte_at(text, 1);
  const auto least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const auto most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (second < least || second > most) {
    return 0;
  }
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) {
      return 0;
    }
  }
  return length;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0) {
      return false;
    }
    text.remove_prefix(length);
  }
  return true;
}

void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto length = utf8_length(text);
    const auto first = byte_at(text, 0);
    if (length == 0) {
      append_hex(out, "\\\\x", first);
    } else if (const auto letter = short_escape(first)) {
      out += '\\';
      out += letter;
    } else if (is_control(text.substr(0, length))) {
      append_hex(out, "\\u00", byte_at(text, length - 1));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

void append_plain(std::string& out, std::string_view text) {
  if (is_plain_word(text)) {
    out += text;
    return;
  }
  out += '"';
  while (!text.empty()) {
    const auto length = utf8_length(text);
    const auto character = text.substr(0, std::max<std::size_t>(length, 1));
    if (const auto letter = short_escape(byte_at(text, 0)); length != 0 && letter != 0) {
      out += '\\';
      out += letter;
    } else if (length == 0 || is_control(character) || is_reordering(character)) {
      for (const auto byte : character) {
        append_hex(out, "\\x", static_cast<std::uint8_t>(byte));
      }
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  out += '"';
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto left = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8U | (j < left ? byte_at(bytes, i + j) : 0U);
    }
    const std::array four{digits[group >> 18U], digits[group >> 12U & 63U],
                          left > 1 ? digits[group >> 6U & 63U] : '=',
                          left > 2 ? digits[group & 63U] : '='};
    out.append(four.begin(), four.end());
  }
  return out;
}

}  // namespace tenure::sys
