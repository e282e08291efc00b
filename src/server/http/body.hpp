#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <tenure/error.hpp>

namespace tenure::server::http {

/// Fields of a JSON request body. Each accessor takes one field by name and type; finish() returns
/// the first error, including unknown fields. See read_body().
class Body {
 public:
  /// Parses the text. An empty body is an empty object. `invalid_argument`: not an object, or
  /// nested objects or arrays.
  [[nodiscard]] static Result<Body> parse(std::string_view text);

  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  /// Accepts strings and numbers: many JSON readers would round 64-bit ids and tokens.
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name);
  [[nodiscard]] std::optional<std::chrono::milliseconds> milliseconds(std::string_view name);

  /// Accessors for required fields.
  [[nodiscard]] std::string required_text(std::string_view name);
  [[nodiscard]] std::uint64_t required_number(std::string_view name);

  /// First error.
  [[nodiscard]] Result<void> finish() const;

 private:
  using Value = std::variant<std::string, std::uint64_t, bool>;

  [[nodiscard]] std::optional<Value> take(std::string_view name);
  void set_error(std::string_view name, std::string_view what);

  std::map<std::string, Value, std::less<>> fields_;
  std::string error_;
};

/// Result of `read(body)`, or the first error in the body.
template <class Read>
[[nodiscard]] auto read_body(std::string_view text, Read read)
    -> Result<decltype(read(std::declval<Body&>()))> {
  auto body = Body::parse(text);
  if (!body) {
    return std::unexpected(body.error());
  }
  auto value = read(*body);
  if (const auto fine = body->finish(); !fine) {
    return std::unexpected(fine.error());
  }
  return value;
}

}  // namespace tenure::server::http
