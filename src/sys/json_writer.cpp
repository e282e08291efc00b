#include "sys/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "sys/escape.hpp"

namespace tenure::sys {

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json(text_, name);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json(text_, text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) {
    return raw("null");
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                 std::chars_format::general, 6)
                       .ptr;
  return raw({digits.data(), end});
}

JsonWriter& JsonWriter::value(std::optional<double> number) {
  return number ? value(*number) : raw("null");
}

JsonWriter& JsonWriter::exact_value(double number) {
  if (!std::isfinite(number)) {
    return raw("null");
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return raw({digits.data(), end});
}

JsonWriter& JsonWriter::bytes(std::string_view name, std::string_view content) {
  if (is_utf8(content)) {
    return field(name, content);
  }
  field(name, std::string_view(base64(content)));
  return field(std::string(name) + "_encoding", "base64");
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view token) {
  separate();
  text_ += token;
  return *this;
}

void JsonWriter::separate() {
  if (std::exchange(needs_comma_, true)) {
    text_ += ',';
  }
}

}  // namespace tenure::sys
