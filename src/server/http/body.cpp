#include "server/http/body.hpp"

#include <utility>

#include <boost/json/parse.hpp>

#include "sys/parse_number.hpp"

namespace tenure::server::http {
namespace {

/// Maximum number of fields; more than any request has.
constexpr std::size_t fields_max = 32;
/// 30 years: above every limit, and safe from clock overflow.
constexpr std::uint64_t milliseconds_max = 1'000'000'000'000;

}  // namespace

Result<Body> Body::parse(std::string_view text) {
  Body body;
  if (text.empty()) {
    return body;
  }
  boost::system::error_code error;
  const auto parsed =
      // The depth limit bounds the recursion of the parser for hostile input.
      boost::json::parse({text.data(), text.size()}, error, {},
                         boost::json::parse_options{.max_depth = 2});
  if (error) {
    return fail(Errc::invalid_argument, "the body is not valid JSON: " + error.message());
  }
  if (!parsed.is_object() || parsed.get_object().size() > fields_max) {
    return fail(Errc::invalid_argument,
                "the body must be a JSON object without nested objects or arrays");
  }
  // A null field counts as absent: many serialisers write null for an unset optional.
  for (const auto& field : parsed.get_object()) {
    std::string name(field.key().data(), field.key().size());
    const auto& value = field.value();
    if (value.is_string()) {
      const auto& string = value.get_string();
      body.fields_.emplace(std::move(name), std::string(string.data(), string.size()));
    } else if (value.is_bool()) {
      body.fields_.emplace(std::move(name), value.get_bool());
    } else if (value.is_uint64() || (value.is_int64() && value.get_int64() >= 0)) {
      body.fields_.emplace(std::move(name), value.is_uint64()
                                                ? value.get_uint64()
                                                : static_cast<std::uint64_t>(value.get_int64()));
    } else if (!value.is_null()) {
      return fail(Errc::invalid_argument,
                  name + ": expected a string, a whole number from 0, true or false");
    }
  }
  return body;
}

std::optional<Body::Value> Body::take(std::string_view name) {
  const auto it = fields_.find(name);
  if (it == fields_.end()) {
    return std::nullopt;
  }
  auto value = std::move(it->second);
  fields_.erase(it);
  return value;
}

void Body::set_error(std::string_view name, std::string_view what) {
  if (error_.empty()) {
    error_ = std::string(name) + ": " + std::string(what);
  }
}

std::optional<std::string> Body::text(std::string_view name) {
  auto value = take(name);
  if (!value) {
    return std::nullopt;
  }
  auto* text = std::get_if<std::string>(&*value);
  if (text == nullptr) {
    set_error(name, "expected a string");
    return std::nullopt;
  }
  return std::move(*text);
}

std::optional<std::uint64_t> Body::number(std::string_view name) {
  const auto value = take(name);
  if (!value) {
    return std::nullopt;
  }
  if (const auto* number = std::get_if<std::uint64_t>(&*value)) {
    return *number;
  }
  const auto* text = std::get_if<std::string>(&*value);
  const auto number = text == nullptr ? std::nullopt : sys::parse_number<std::uint64_t>(*text);
  if (!number) {
    set_error(name, "expected a number, as a JSON number or a string");
  }
  return number;
}

std::optional<std::chrono::milliseconds> Body::milliseconds(std::string_view name) {
  const auto count = number(name);
  if (count && *count > milliseconds_max) {
    set_error(name, "too long");
    return std::nullopt;
  }
  return count ? std::optional(std::chrono::milliseconds(*count)) : std::nullopt;
}

std::string Body::required_text(std::string_view name) {
  if (!fields_.contains(name)) {
    set_error(name, "required");
  }
  return text(name).value_or("");
}

std::uint64_t Body::required_number(std::string_view name) {
  if (!fields_.contains(name)) {
    set_error(name, "required");
  }
  return number(name).value_or(0);
}

Result<void> Body::finish() const {
  if (!error_.empty()) {
    return fail(Errc::invalid_argument, error_);
  }
  if (!fields_.empty()) {
    return fail(Errc::invalid_argument, fields_.begin()->first + ": unknown field");
  }
  return {};
}

}  // namespace tenure::server::http
