#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"

namespace tenure::cli {

/// Output format: human-readable, machine-readable, or none.
enum class Format : std::uint8_t { table, json, quiet };
/// --json takes precedence over --output.
[[nodiscard]] Format format_of(const Arguments& arguments);

/// Colors of the basic palette, which the theme of the terminal defines.
enum class Color : std::uint8_t { none, bold, dim, red, green, yellow };
/// Colors the text if this file (1 or 2) is a terminal with colors and NO_COLOR is not set.
[[nodiscard]] std::string colored(Color color, std::string_view text, int file = 1);

/// Escapes control characters of a name or metadata, so that it cannot control the terminal. "-" if
/// empty. For single fields: newlines and tabs are escaped too, so that a row stays one row.
[[nodiscard]] std::string plain(std::string_view text);
/// Replaces control characters except newlines in text from a server. For running text, such as
/// errors, in which line breaks have a meaning.
[[nodiscard]] std::string sanitized(std::string_view text);
/// Human-readable duration: "1.5 s", "3 min 20 s".
[[nodiscard]] std::string format_duration(std::chrono::milliseconds time);

/// Duration in a cell of a table: human-readable on a terminal; in a pipe in seconds, "200.125s",
/// which sort(1) and the options of this command read.
[[nodiscard]] std::string duration_cell(std::chrono::milliseconds time);
/// UTC time with milliseconds, as in RFC 3339: "2026-11-19T14:03:12.345Z".
[[nodiscard]] std::string format_utc(std::chrono::system_clock::time_point time);
/// Appends spaces up to this number of columns.
[[nodiscard]] std::string padded(std::string text, std::size_t columns);
/// Whether stdout is a terminal.
[[nodiscard]] bool is_at_terminal();
/// Local date and time: "2026-11-19 14:03:12".
[[nodiscard]] std::string format_time(std::chrono::system_clock::time_point time);
/// Columns that the text takes on a terminal, without its color sequences. An estimate: wide
/// characters (East Asian, emoji) count as two columns, all others as one.
[[nodiscard]] std::size_t columns_of(std::string_view text);
/// Truncates text without color sequences to this number of columns.
[[nodiscard]] std::string cut_to_columns(std::string_view text, std::size_t columns);

/// Table: aligned columns with a header on a terminal; in a pipe tab-separated rows without header,
/// for cut(1) and awk(1). Not thread safe. REQUIRES: each row has as many cells as the header.
class Table {
 public:
  explicit Table(std::vector<std::string> headline) : headline_(std::move(headline)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Whole table as text. The layout depends on whether stdout is a terminal.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::string> headline_;
  std::vector<std::vector<std::string>> rows_;
};

/// Writes to stdout and flushes, so that a reader of a pipe sees each line of a running command at
/// once.
void print(std::string_view text);
/// Writes a line to stderr, prefixed with "tenure:". Sanitizes the text, which may come from a
/// server.
void print_error(std::string_view text);
/// Prints an error and returns its exit code.
[[nodiscard]] int failed(const Error& error);

}  // namespace tenure::cli
