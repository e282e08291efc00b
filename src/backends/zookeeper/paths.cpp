#include "backends/zookeeper/paths.hpp"

#include <algorithm>

#include "sys/escape.hpp"

namespace tenure::backends::zookeeper {
namespace {

void append_escaped(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char byte : bytes) {
    const auto number = static_cast<unsigned char>(byte);
    out.push_back('%');
    out.push_back(digits[number / 16]);
    out.push_back(digits[number % 16]);
  }
}

/// The code point of one well-formed UTF-8 character.
char32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) {
    return first;
  }
  char32_t code = first & (0xFFU >> (character.size() + 1));
  for (const char byte : character.substr(1)) {
    code = (code << 6U) | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return code;
}

/// ZooKeeper rejects control characters, private use and Unicode specials; surrogates represent
/// characters beyond U+FFFF in its Java strings.
bool is_taken(char32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
  const bool is_private = code >= 0xD800 && code <= 0xF8FF;
  return !is_control && !is_private && code < 0xFFF0;
}

void append_part(std::string& path, std::string_view part) {
  if (part.empty()) {
    path.push_back('%');  // No other component becomes "%".
    return;
  }
  if (part == "." || part == "..") {
    append_escaped(path, part);
    return;
  }
  while (!part.empty()) {
    const auto bytes = std::max<std::size_t>(1, sys::utf8_length(part));
    const auto character = part.substr(0, bytes);
    part.remove_prefix(bytes);
    const bool is_good = sys::is_utf8(character) && is_taken(code_point(character));
    if (is_good && character != "%") {
      path.append(character);
    } else {
      append_escaped(path, character);
    }
  }
}

}  // namespace

std::string folder_of(std::string_view chroot, std::string_view name) {
  std::string path(chroot);
  path.reserve(chroot.size() + name.size() + 1);
  bool is_first = true;
  for (;;) {
    const auto slash = name.find('/');
    const auto part = name.substr(0, slash);
    path.push_back('/');
    if (is_first && chroot.empty() && part == "zookeeper") {
      append_escaped(path, part.substr(0, 1));  // Would denote the folder itself.
      append_part(path, part.substr(1));
    } else {
      append_part(path, part);
    }
    if (slash == std::string_view::npos) {
      return path;
    }
    name.remove_prefix(slash + 1);
    is_first = false;
  }
}

std::string gate_of(std::string_view folder) {
  return std::string(folder).append("/locks");
}

std::string leases_of(std::string_view folder) {
  return std::string(folder).append("/leases");
}

std::string_view parent_of(std::string_view path) {
  return path.substr(0, path.rfind('/'));
}

std::string_view last_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view flaw_of_chroot(std::string_view path) {
  if (!sys::is_utf8(path)) {
    return "it is not UTF-8";
  }
  while (!path.empty()) {
    path.remove_prefix(1);  // '/'
    const auto part = path.substr(0, path.find('/'));
    if (part.empty()) {
      return "it has two '/' in a row, or one at its end";
    }
    if (part == "." || part == "..") {
      return "it has a part \".\" or \"..\"";
    }
    for (auto rest = part; !rest.empty(); rest.remove_prefix(sys::utf8_length(rest))) {
      if (!is_taken(code_point(rest.substr(0, sys::utf8_length(rest))))) {
        return "it has a character that ZooKeeper does not take";
      }
    }
    path.remove_prefix(part.size());
  }
  return {};
}

}  // namespace tenure::backends::zookeeper
