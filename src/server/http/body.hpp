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
///
/// Every accessor removes its field, so the fields that remain at finish() are the unknown ones.
/// Unknown fields are errors because a misspelled `ttl_ms` would otherwise silently become the
/// default TTL.
///
/// After an error the accessors return empty values instead of failing, so a handler reads all
/// fields without a check after each. The values are meaningful only if finish() succeeds. Not
/// thread safe.
class Body {
 public:
  /// Parses the text. An empty body is an empty object. `invalid_argument`: not an object, or
  /// nested objects or arrays.
  [[nodiscard]] static Result<Body> parse(std::string_view text);

  /// nullopt: the field is absent or null, or has another type; finish() distinguishes them.
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  /// Accepts strings and numbers: many JSON readers would round 64-bit ids and tokens. Negative
  /// numbers and fractions are errors.
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name);
  /// A duration above 30 years is an error, so that adding it to any clock cannot overflow.
  [[nodiscard]] std::optional<std::chrono::milliseconds> milliseconds(std::string_view name);

  /// Accessors for required fields.
  [[nodiscard]] std::string required_text(std::string_view name);
  [[nodiscard]] std::uint64_t required_number(std::string_view name);

  /// First error. Earlier errors win, because later ones are often their consequence.
  [[nodiscard]] Result<void> finish() const;

 private:
  using Value = std::variant<std::string, std::uint64_t, bool>;

  [[nodiscard]] std::optional<Value> take(std::string_view name);
  void set_error(std::string_view name, std::string_view what);

  /// Fields that no accessor has taken yet.
  std::map<std::string, Value, std::less<>> fields_;
  /// First error as `field: reason`; empty: none.
  std::string error_;
};

/// Result of `read(body)`, or the first error in the body. Handlers read a body only by this
/// function, so that finish() is never forgotten.
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
