#include "fence/question.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "sys/escape.hpp"
#include "sys/parse_number.hpp"

namespace tenure::fence {
namespace {

Error never(std::string detail) {
  return {.code = Errc::invalid_argument, .detail = std::move(detail)};
}

std::unexpected<Refusal> refuse(const Question& question, FencingToken highest) {
  const bool is_stale = question.token < highest;
  std::string detail = "token " + std::to_string(question.token.get());
  if (is_stale) {
    detail += " is stale: " + std::to_string(highest.get()) + " has been at ";
  } else {
    detail += " has been used: it was admitted once at ";
  }
  sys::append_json(detail, question.resource);
  return std::unexpected(
      Refusal{.reason = is_stale ? Refusal::Reason::stale : Refusal::Reason::reused,
              .token = question.token,
              .highest = highest,
              .error = {.code = is_stale ? Errc::lease_lost : Errc::invalid_argument,
                        .detail = std::move(detail)}});
}

}  // namespace

std::optional<Error> complaint(std::string_view resource) {
  if (resource.empty()) {
    return never("the resource has no name; it must be the same name for all who write there");
  }
  if (resource.size() > resource_bytes_max) {
    return never("the name of the resource has " + std::to_string(resource.size()) +
                 " bytes; at most " + std::to_string(resource_bytes_max) + " are allowed");
  }
  return std::nullopt;
}

std::optional<Error> complaint(const Question& question) {
  if (auto about_name = complaint(question.resource)) {
    return about_name;
  }
  if (question.token == FencingToken{}) {
    return never("0 is no fencing token; show the one that came with the lock");
  }
  if (question.token > fencing_token_max) {
    return never("token " + std::to_string(question.token.get()) + " is beyond the largest, " +
                 std::to_string(fencing_token_max.get()));
  }
  return std::nullopt;
}

std::optional<Error> table_complaint(std::string_view name) {
  constexpr std::size_t table_bytes_max = 63;  // PostgreSQL cuts longer ones without a word
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";
  constexpr std::string_view letters_and_digits = "abcdefghijklmnopqrstuvwxyz_0123456789";
  if (name.empty() || name.size() > table_bytes_max || !letters.contains(name.front()) ||
      name.find_first_not_of(letters_and_digits) != std::string_view::npos) {
    std::string detail;
    sys::append_json(detail, name.substr(0, 2 * table_bytes_max));
    return never(detail + " cannot be the name of the table: 1 to 63 of a-z, 0-9 and _ are " +
                 "allowed, and no digit in front");
  }
  return std::nullopt;
}

Admission judge(const Question& question, FencingToken highest) {
  const bool is_admitted =
      question.equal == Equal::admit ? question.token >= highest : question.token > highest;
  if (!is_admitted) {
    return refuse(question, highest);
  }
  return {};
}

Admission not_taken(const Question& question, FencingToken highest) {
  auto admission = judge(question, highest);
  if (admission) {
    return not_checked(question,
                       {.code = Errc::unavailable,
                        .detail = "the database did not keep the token; is there a trigger or a "
                                  "policy on the table of the fence?"});
  }
  return admission;
}

Admission not_checked(const Question& question, Error why) {
  return std::unexpected(Refusal{.token = question.token, .error = std::move(why)});
}

std::optional<FencingToken> token_from(std::string_view digits) {
  const FencingToken token{sys::parse_number<std::uint64_t>(digits).value_or(0)};
  return token == FencingToken{} || token > fencing_token_max ? std::nullopt : std::optional(token);
}

}  // namespace tenure::fence
