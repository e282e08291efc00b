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

/// The fields of a JSON object that came with a request. Each is taken once, by its name and as
/// what it must be; finish() says what was wrong, also with fields that nobody took. See
/// read_body().
class Body {
 public:
  /// Nothing at all is an object without fields. `invalid_argument` if it is no object, or one with
  /// objects or arrays inside.
  [[nodiscard]] static Result<Body> parse(std::string_view text);

  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  /// Ids and tokens come as text, since many readers of JSON would round them; as numbers, too.
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name);
  [[nodiscard]] std::optional<std::chrono::milliseconds> milliseconds(std::string_view name);

  /// The same for what must be there.
  [[nodiscard]] std::string required_text(std::string_view name);
  [[nodiscard]] std::uint64_t required_number(std::string_view name);

  /// The first thing that was wrong.
  [[nodiscard]] Result<void> finish() const;

 private:
  using Value = std::variant<std::string, std::uint64_t, bool>;

  [[nodiscard]] std::optional<Value> take(std::string_view name);
  void set_error(std::string_view name, std::string_view what);

  std::map<std::string, Value, std::less<>> fields_;
  std::string error_;
};

/// What `read(body)` makes of it; or what is wrong with it.
///
///     const auto token = read_body(text, [](Body& body) { return body.required_number("token"); });
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
