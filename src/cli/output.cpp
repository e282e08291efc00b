#include "cli/output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <unistd.h>

#include "sys/escape.hpp"

namespace tenure::cli {
namespace {

/// Whether the file shows colors: a terminal that is not "dumb", without NO_COLOR (no-color.org).
bool has_colors(int file) {
  const auto* no = std::getenv("NO_COLOR");
  const auto* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return (no == nullptr || *no == '\0') && !is_dumb && isatty(file) == 1;
}

/// ANSI escape sequence that starts a color.
std::string_view sequence_of(Color color) {
  switch (color) {
    case Color::none: return "";
    case Color::bold: return "\033[1m";
    case Color::dim: return "\033[2m";
    case Color::red: return "\033[31m";
    case Color::green: return "\033[32m";
    case Color::yellow: return "\033[33m";
  }
  return "";
}

/// Width on a terminal: UTF-8 characters, without color sequences. Assumes one column for each
/// character, which is wrong for wide characters: their rows are then misaligned, and nothing else
/// happens.
std::size_t width(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\033') {
      at = std::min(text.find('m', at), text.size());
    } else if ((static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U) {
      ++count;
    }
  }
  return count;
}

}  // namespace

Format format_of(const Arguments& arguments) {
  const auto format = arguments.text("--output").value_or("table");
  if (arguments.has("--json") || format == "json") {
    return Format::json;
  }
  return format == "quiet" ? Format::quiet : Format::table;
}

std::string colored(Color color, std::string_view text, int file) {
  if (color == Color::none || !has_colors(file)) {
    return std::string(text);
  }
  // Reset after each text, so that an aborted output leaves the terminal in its normal colors.
  return std::string(sequence_of(color)) + std::string(text) + "\033[0m";
}

std::string plain(std::string_view text) {
  if (text.empty()) {
    return "-";
  }
  std::string out;
  sys::append_plain(out, text);
  return out;
}

std::string format_duration(std::chrono::milliseconds time) {
  using namespace std::chrono_literals;
  std::array<char, 48> text{};
  const auto seconds = time.count() / 1000;
  // Two units at most: the exact value is in the JSON output.
  if (time < 1s) {
    std::snprintf(text.data(), text.size(), "%lld ms", static_cast<long long>(time.count()));
  } else if (time < 10s) {
    std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(time.count()) / 1000);
  } else if (time < 1min) {
    std::snprintf(text.data(), text.size(), "%lld s", static_cast<long long>(seconds));
  } else if (time < 1h) {
    std::snprintf(text.data(), text.size(), "%lld min %lld s", static_cast<long long>(seconds / 60),
                  static_cast<long long>(seconds % 60));
  } else {
    std::snprintf(text.data(), text.size(), "%lld h %lld min",
                  static_cast<long long>(seconds / 3600),
                  static_cast<long long>(seconds / 60 % 60));
  }
  return text.data();
}

std::string Table::text() const {
  std::string out;
  // No header and no padding, so that cut(1) and awk(1) need no options.
  if (isatty(STDOUT_FILENO) != 1) {
    for (const auto& row : rows_) {
      for (std::size_t column = 0; column < row.size(); ++column) {
        out += (column == 0 ? "" : "\t") + row[column];
      }
      out += '\n';
    }
    return out;
  }
  std::vector<std::size_t> widths(headline_.size(), 0);
  const auto measure = [&](const std::vector<std::string>& row) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width(row[column]));
    }
  };
  // The widths need all rows, which is why a table is printed at its end and not row by row.
  measure(headline_);
  std::ranges::for_each(rows_, measure);
  const auto line = [&](const std::vector<std::string>& row) {
    std::string made;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const bool is_last = column + 1 == row.size();
      made += row[column];
      // No padding after the last cell, which could wrap the line.
      made += is_last ? "" : std::string(widths[column] - width(row[column]) + 2, ' ');
    }
    return made;
  };
  out += colored(Color::bold, line(headline_)) + '\n';
  for (const auto& row : rows_) {
    out += line(row) + '\n';
  }
  return out;
}

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string sanitized(std::string_view text) {
  std::string out;
  std::ranges::transform(text, std::back_inserter(out), [](char byte) {
    const auto number = static_cast<unsigned char>(byte);
    // Escape and the other control characters could move the cursor or change the title of a
    // terminal.
    return (number < 0x20 && byte != '\n') || number == 0x7F ? '?' : byte;
  });
  return out;
}

void print_error(std::string_view text) {
  const auto line = colored(Color::red, "tenure:", STDERR_FILENO) + " " + sanitized(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

int failed(const Error& error) {
  // The detail names the cause; the message of the code is the fallback.
  print_error(error.detail.empty() ? message(error.code) : std::string_view(error.detail));
  return code(exit_code_of(error.code));
}

}  // namespace tenure::cli
