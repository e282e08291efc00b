#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"

namespace tenure::cli {

/// For whom the output is: people, programs, or nobody.
enum class Format : std::uint8_t { table, json, quiet };
[[nodiscard]] Format format_of(const Arguments& arguments);

enum class Colour : std::uint8_t { none, bold, dim, red, green, yellow };
/// The text in a colour, if this file (1 or 2) is a terminal that has any and NO_COLOR is not set.
[[nodiscard]] std::string painted(Colour colour, std::string_view text, int file = 1);

/// A name or a note as it may stand on a terminal: nothing in it speaks to that.
[[nodiscard]] std::string plain(std::string_view text);
/// A whole sentence that somebody else made: no control characters but ends of lines.
[[nodiscard]] std::string harmless(std::string_view text);
/// "1.5 s", "3 min 20 s".
[[nodiscard]] std::string spoken(std::chrono::milliseconds time);

/// Rows under a headline, in columns on a terminal; in a pipe without the headline, with tabs in
/// between, for cut(1) and awk(1).
class Table {
 public:
  explicit Table(std::vector<std::string> headline) : headline_(std::move(headline)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::string> headline_;
  std::vector<std::vector<std::string>> rows_;
};

/// Writes to stdout, at once.
void print(std::string_view text);
/// Writes a line to stderr, with our name before it.
void complain(std::string_view text);
/// Says what went wrong, and with which code to leave.
[[nodiscard]] int failed(const Error& error);

}  // namespace tenure::cli
