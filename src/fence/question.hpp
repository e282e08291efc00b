#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/ids.hpp>

namespace tenure::fence {

/// What becomes of the token that was admitted last, when it comes again.
enum class Equal : std::uint8_t { admit, refuse };

/// What all forms of the fence are asked.
struct Question {
  std::string_view resource;
  FencingToken token;
  Equal equal;
};

/// Why the question can have no answer, or nothing.
[[nodiscard]] std::optional<Error> complaint(const Question& question);
[[nodiscard]] std::optional<Error> complaint(std::string_view resource);

/// Why `name` is not taken as the name of a table: it becomes part of SQL text, so it is kept to
/// what needs no quotes in any database.
[[nodiscard]] std::optional<Error> table_complaint(std::string_view name);

/// The answer, when `highest` is the newest token that has been there; 0 if none has.
[[nodiscard]] Admission judge(const Question& question, FencingToken highest);

/// The answer when a database did not take the token and says that `highest` is there. Never an
/// admission: what was not written cannot shut anybody out.
[[nodiscard]] Admission not_taken(const Question& question, FencingToken highest);

/// The fence could not look.
[[nodiscard]] Admission not_checked(const Question& question, Error why);

/// A token as a database wrote it: decimal digits, 1 to fencing_token_max.
[[nodiscard]] std::optional<FencingToken> token_from(std::string_view digits);

}  // namespace tenure::fence
