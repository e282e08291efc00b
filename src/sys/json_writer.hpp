#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/strong.hpp>

namespace tenure::sys {

/// Streaming writer of one JSON value. Places commas and escapes strings; the result is valid JSON
/// whatever bytes the strings have (append_json). Ids are strings, because readers that keep
/// numbers as doubles would round those above 2^53; counts are numbers. Not thread safe.
///
///     JsonWriter json;
///     json.object([&] { json.field("name", "a").id("token", 7); });
///     json.text();  // {"name":"a","token":"7"}
class JsonWriter {
 public:
  // REQUIRES: begins and ends match, and every field of an object begins with a key.
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  /// An object around what `body` writes.
  template <class Body>
  JsonWriter& object(Body body) {
    begin_object();
    body();
    return end_object();
  }
  template <class Body>
  JsonWriter& object(std::string_view name, Body body) {
    return key(name).object(std::move(body));
  }
  template <class Body>
  JsonWriter& array(std::string_view name, Body body) {
    key(name).begin_array();
    body();
    return end_array();
  }

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::same_as<bool> auto fact) { return raw(fact ? "true" : "false"); }
  JsonWriter& value(std::integral auto number)
    requires(!std::same_as<decltype(number), bool>)
  {
    return raw(std::to_string(number));
  }
  /// Six significant digits; null if the number is not finite.
  JsonWriter& value(double number);
  JsonWriter& value(std::optional<double> number);
  template <class Tag>
  JsonWriter& value(Strong<std::uint64_t, Tag> number) {
    return id(number.get());
  }
  /// All digits that are needed to read the same number; null if the number is not finite.
  JsonWriter& exact_value(double number);
  /// A number as a string.
  JsonWriter& id(std::uint64_t number) { return value(std::string_view(std::to_string(number))); }

  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }
  JsonWriter& id(std::string_view name, std::uint64_t number) { return key(name).id(number); }
  /// Arbitrary bytes. UTF-8 is written as text; anything else in base64, and a second field
  /// `<name>_encoding` names the encoding.
  JsonWriter& bytes(std::string_view name, std::string_view content);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& raw(std::string_view token);
  void separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace tenure::sys
