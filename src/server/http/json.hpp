#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tenure/strong.hpp>

#include "sys/escape.hpp"

namespace tenure::server::http {

/// Writes JSON front to back; what is opened is closed by itself.
///
///     Json json;
///     json.object([&] { json.field("name", "a"); });
///     json.take();
class Json {
 public:
  template <class Body>
  void object(Body body) {
    begin_value();
    enclose('{', '}', std::move(body));
  }
  template <class Body>
  void object(std::string_view key, Body body) {
    begin_field(key);
    enclose('{', '}', std::move(body));
  }
  template <class Body>
  void array(std::string_view key, Body body) {
    begin_field(key);
    enclose('[', ']', std::move(body));
  }

  void field(std::string_view key, std::string_view text) {
    begin_field(key);
    sys::append_json(out_, text);
  }
  void field(std::string_view key, const char* text) { field(key, std::string_view(text)); }
  void field(std::string_view key, std::same_as<bool> auto value) {
    begin_field(key);
    out_ += value ? "true" : "false";
  }
  /// For counts. Ids are strings: a reader that keeps numbers as doubles would round them.
  void field(std::string_view key, std::integral auto number)
    requires(!std::same_as<decltype(number), bool>)
  {
    begin_field(key);
    out_ += std::to_string(number);
  }
  /// With what a chart can show of it.
  void field(std::string_view key, std::floating_point auto number) {
    begin_field(key);
    append(number);
  }
  template <class Tag>
  void field(std::string_view key, Strong<std::uint64_t, Tag> id) {
    field(key, std::string_view(std::to_string(id.get())));
  }
  void id(std::string_view key, std::uint64_t number) { field(key, std::to_string(number)); }

  /// What a client chose. As text if it is UTF-8; else in base64, and `key_encoding` says so.
  void bytes(std::string_view key, std::string_view value) {
    if (sys::is_utf8(value)) {
      field(key, value);
      return;
    }
    field(key, std::string_view(sys::base64(value)));
    field(std::string(key) + "_encoding", "base64");
  }

  /// An element of an array.
  void element(std::string_view text) {
    begin_value();
    sys::append_json(out_, text);
  }

  /// A number in an array; null if there is none.
  void element(std::optional<double> number) {
    begin_value();
    if (number) {
      append(*number);
    } else {
      out_ += "null";
    }
  }

  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void append(double number) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number,
                                   std::chars_format::general, 6);
    out_.append(text.data(), end.ptr);
  }
  template <class Body>
  void enclose(char open, char close, Body body) {
    out_ += open;
    is_first_ = true;
    body();
    out_ += close;
    is_first_ = false;
  }
  void begin_value() {
    if (!is_first_) {
      out_ += ',';
    }
    is_first_ = false;
  }
  void begin_field(std::string_view key) {
    begin_value();
    sys::append_json(out_, key);
    out_ += ':';
  }

  std::string out_;
  bool is_first_ = true;
};

}  // namespace tenure::server::http
