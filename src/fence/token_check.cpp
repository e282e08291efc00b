#include "fence/token_check.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "sys/escape.hpp"
#include "sys/parse_number.hpp"

namespace tenure::fence {
namespace {

Error invalid(std::string detail) {
  return {.code = Errc::invalid_argument, .detail = std::move(detail)};
}

/// A smaller token belongs to a holder that has lost the lock: lease_lost. An equal one was used
/// before, and only admit_once() rejects it: invalid_argument.
std::unexpected<FenceError> reject(const TokenCheck& check, FencingToken highest) {
  const bool is_stale = check.token < highest;
  std::string detail = "token " + std::to_string(check.token.get());
  if (is_stale) {
    detail += " is stale: " + std::to_string(highest.get()) + " was admitted for ";
  } else {
    detail += " was admitted before for ";
  }
  sys::append_json(detail, check.resource);
  return std::unexpected(
      FenceError{.reason = is_stale ? FenceError::Reason::stale : FenceError::Reason::reused,
                 .token = check.token,
                 .highest = highest,
                 .error = {.code = is_stale ? Errc::lease_lost : Errc::invalid_argument,
                           .detail = std::move(detail)}});
}

}  // namespace

std::optional<Error> validate(std::string_view resource) {
  if (resource.empty()) {
    return invalid("the resource name is empty; all writers of a resource must use the same name");
  }
  if (resource.size() > resource_bytes_max) {
    return invalid("the resource name has " + std::to_string(resource.size()) + " bytes; at most " +
                   std::to_string(resource_bytes_max) + " are allowed");
  }
  return std::nullopt;
}

std::optional<Error> validate(const TokenCheck& check) {
  if (auto invalid_name = validate(check.resource)) {
    return invalid_name;
  }
  // 0 is the token of a lock without fencing, or of an empty guard. To admit it on a new resource
  // would let a writer without a lock pass.
  if (check.token == FencingToken{}) {
    return invalid("0 is not a fencing token; pass token() of the guard");
  }
  if (check.token > fencing_token_max) {
    return invalid("token " + std::to_string(check.token.get()) + " exceeds the largest token, " +
                   std::to_string(fencing_token_max.get()));
  }
  return std::nullopt;
}

std::optional<Error> validate_table(std::string_view name) {
  // PostgreSQL silently truncates longer names.
  constexpr std::size_t table_bytes_max = 63;
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
  constexpr std::string_view letters_and_digits = "abcdefghijklmnopqrstuvwxyz_0123456789";
  if (name.empty() || name.size() > table_bytes_max || !letters.contains(name.front()) ||
      name.find_first_not_of(letters_and_digits) != std::string_view::npos) {
    std::string detail;
    // Truncated, because an invalid name may have any length, and escaped, because it may contain
    // any byte.
    sys::append_json(detail, name.substr(0, 2 * table_bytes_max));
    return invalid(detail +
                   " is not a valid table name: use 1 to 63 characters of a-z, 0-9 and _, " +
                   "not starting with a digit");
  }
  return std::nullopt;
}

FenceResult decide(const TokenCheck& check, FencingToken highest) {
  const bool is_admitted =
      check.repeated == Repeated::admit ? check.token >= highest : check.token > highest;
  if (!is_admitted) {
    return reject(check, highest);
  }
  return {};
}

FenceResult not_stored(const TokenCheck& check, FencingToken highest) {
  // Applies the rule once more, because the database reports only that it stored nothing. If the
  // rule would admit the token, something else has prevented the write.
  auto result = decide(check, highest);
  if (result) {
    return not_checked(check,
                       {.code = Errc::unavailable,
                        .detail = "the database did not store the token; look for a trigger or a "
                                  "policy on the table of the fence"});
  }
  return result;
}

FenceResult not_checked(const TokenCheck& check, Error why) {
  return std::unexpected(FenceError{.token = check.token, .error = std::move(why)});
}

std::optional<FencingToken> token_from(std::string_view digits) {
  // A text that is not a number becomes 0, which is no valid token either.
  const FencingToken token{sys::parse_number<std::uint64_t>(digits).value_or(0)};
  return token == FencingToken{} || token > fencing_token_max ? std::nullopt : std::optional(token);
}

}  // namespace tenure::fence
