#include "cli/output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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

/// Bytes of the character at the front, at least one. Bytes that are no UTF-8 count one by one.
std::size_t character_bytes(std::string_view text) {
  return std::max<std::size_t>(sys::utf8_length(text), 1);
}

/// Code point of a well-formed UTF-8 character.
char32_t code_point_of(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  // The lead byte has as many leading ones as the character has bytes.
  auto point = static_cast<char32_t>(
      character.size() == 1 ? first : first & ((1U << (7U - character.size())) - 1U));
  for (const char byte : character.substr(1)) {
    point = (point << 6U) | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return point;
}

/// Whether terminals show the character in two columns (Unicode East Asian Width, simplified to
/// blocks).
bool is_wide(char32_t point) {
  constexpr std::array<std::pair<char32_t, char32_t>, 9> blocks{{{0x1100, 0x115F},
                                                                 {0x2E80, 0xA4CF},
                                                                 {0xAC00, 0xD7A3},
                                                                 {0xF900, 0xFAFF},
                                                                 {0xFE30, 0xFE6F},
                                                                 {0xFF00, 0xFF60},
                                                                 {0xFFE0, 0xFFE6},
                                                                 {0x1F300, 0x1FAFF},
                                                                 {0x20000, 0x3FFFD}}};
  return std::ranges::any_of(
      blocks, [point](const auto& block) { return point >= block.first && point <= block.second; });
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

std::string duration_cell(std::chrono::milliseconds time) {
  if (is_at_terminal()) {
    return format_duration(time);
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%lld.%03llds",
                static_cast<long long>(time.count() / 1000),
                static_cast<long long>(time.count() % 1000));
  return text.data();
}

std::string format_utc(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::system_clock::to_time_t(time);
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch());
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 48> whole{};
  std::snprintf(whole.data(), whole.size(), "%s.%03lldZ", text.data(),
                static_cast<long long>(since.count() % 1000));
  return whole.data();
}

std::string padded(std::string text, std::size_t columns) {
  const auto used = columns_of(text);
  return std::move(text) + std::string(columns > used ? columns - used : 0, ' ');
}

bool is_at_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}

std::string format_time(std::chrono::system_clock::time_point time) {
  const auto seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

std::size_t columns_of(std::string_view text) {
  std::size_t count = 0;
  while (!text.empty()) {
    const auto bytes = text.front() == '\033' ? std::min(text.find('m'), text.size() - 1) + 1
                                              : character_bytes(text);
    const bool is_shown = text.front() != '\033';
    count += is_shown ? (is_wide(code_point_of(text.substr(0, bytes))) ? 2 : 1) : 0;
    text.remove_prefix(bytes);
  }
  return count;
}

std::string cut_to_columns(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t used = 0; end < text.size();) {
    const auto bytes = character_bytes(text.substr(end));
    used += columns_of(text.substr(end, bytes));
    if (used > columns) {
      break;
    }
    end += bytes;
  }
  return std::string(text.substr(0, end));
}

std::string Table::text() const {
  std::string out;
  // No header and no padding, so that cut(1) and awk(1) need no options.
  if (!is_at_terminal()) {
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
      widths[column] = std::max(widths[column], columns_of(row[column]));
    }
  };
  // The widths need all rows, which is why a table is printed at its end and not row by row.
  measure(headline_);
  std::ranges::for_each(rows_, measure);
  const auto line = [&](const std::vector<std::string>& row) {
    std::string made;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const bool is_last = column + 1 == row.size();
      made += is_last ? row[column] : padded(row[column], widths[column]);
      // No padding after the last cell, which could wrap the line.
      made += is_last ? "" : "  ";
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
