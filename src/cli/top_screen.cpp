#include "cli/top_screen.hpp"

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

// Not in a header, because it defines macros such as `timeout`, `erase` and `move`.
#define NCURSES_NOMACROS 1
#include <ncurses.h>

#include "cli/latencies.hpp"
#include "cli/locks.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

// Color pairs of ncurses.
constexpr short good = 1;
constexpr short warm = 2;
constexpr short hot = 3;
/// Rows of title, totals, rates and latencies above the lists.
constexpr int head_rows = 4;
/// Longest interval that the keys can select.
constexpr milliseconds interval_max{60'000};

/// Truncates or pads to this number of columns. Counts UTF-8 characters as one column each.
/// Truncated text ends with "~".
std::string fitted(std::string_view text, std::size_t columns) {
  std::string out;
  std::size_t count = 0;
  // Length of `out` before its last character, which makes space for the mark.
  std::size_t before_last = 0;
  for (std::size_t at = 0; at < text.size();) {
    auto end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      ++end;
    }
    if (count == columns) {
      out.resize(before_last);
      return columns == 0 ? "" : out + "~";
    }
    before_last = out.size();
    out += text.substr(at, end - at);
    ++count;
    at = end;
  }
  return out + std::string(columns - count, ' ');
}

/// Writes text at a position, clipped at the edge. Outside of the screen it has no effect: the
/// terminal may be smaller than the layout.
void put(int row, int column, const std::string& text, attr_t sample = A_NORMAL) {
  if (row < 0 || row >= LINES || column >= COLS) {
    return;
  }
  attron(static_cast<int>(sample));
  mvaddstr(row, column,
           fitted(text, std::min(text.size(), static_cast<std::size_t>(COLS - column))).c_str());
  attroff(static_cast<int>(sample));
}

/// Attribute of a color pair; bold without colors, so that the mark stays visible.
attr_t coloured(short pair) {
  return has_colors() && std::getenv("NO_COLOR") == nullptr ? static_cast<attr_t>(COLOR_PAIR(pair))
                                                            : A_BOLD;
}

/// Table with a header row; the first column takes the remaining width.
struct List {
  std::vector<std::string> headline{};
  std::vector<std::size_t> widths{};  ///< Column widths; a minimum for the first.
  struct Row {
    std::vector<std::string> cells{};
    attr_t sample = A_NORMAL;
  };
  std::vector<Row> rows{};
  std::size_t marked = 0;  ///< Sort column to highlight; 0: none.
};

/// Draws the header and the rows that fit into `height`. The last row stays visible if the user
/// scrolls too far.
void draw_list(const List& list, int top, int height, std::size_t scrolled) {
  if (height < 1) {
    return;
  }
  auto widths = list.widths;
  const auto fixed =
      std::accumulate(widths.begin() + 1, widths.end(), std::size_t{0}) + widths.size() - 1;
  const auto columns = static_cast<std::size_t>(std::max(COLS, 1));
  widths.front() = std::max(widths.front(), columns > fixed ? columns - fixed : 0);
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      text += (column == 0 ? "" : " ") + fitted(cells[column], widths[column]);
    }
    return fitted(text, columns);
  };
  put(top, 0, line(list.headline), A_REVERSE);
  if (list.marked != 0) {
    const auto at = std::accumulate(
        widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(list.marked), list.marked);
    put(top, static_cast<int>(at), fitted(list.headline[list.marked], widths[list.marked]),
        A_REVERSE | A_BOLD | A_UNDERLINE);
  }
  const auto first = std::min(scrolled, list.rows.empty() ? 0 : list.rows.size() - 1);
  for (int row = 1; row < height; ++row) {
    const auto index = first + static_cast<std::size_t>(row) - 1;
    if (index < list.rows.size()) {
      put(top + row, 0, line(list.rows[index].cells), list.rows[index].sample);
    }
  }
}

/// Index of the column that belongs to the sort key. 0, the name, is not highlighted.
std::size_t column_of(TopOrder order) {
  switch (order) {
    case TopOrder::waiters: return 3;
    case TopOrder::longest_wait: return 4;
    case TopOrder::held: return 5;
    case TopOrder::grants: return 6;
    case TopOrder::name: break;
  }
  return 0;
}

/// List of the locks. Red from ten waiters on, yellow with fewer.
List locks_of(const TopSample& sample, const TopChoice& choice) {
  List list{
      .headline = {"LOCK", "HOLDER", "MODE", "WAITERS", "LONGEST", "HELD", "GRANTS", "METADATA"},
      .widths = {12, 20, 9, 7, 11, 11, 8, 16},
      .marked = column_of(choice.order)};
  for (const auto& lock : sorted(sample.locks, choice.order, choice.filter)) {
    const auto others = lock.holders > 1 ? " +" + std::to_string(lock.holders - 1) : std::string();
    list.rows.push_back(
        {.cells = {plain(lock.name), plain(lock.owner) + others, plain(lock.mode),
                   std::to_string(lock.waiters),
                   lock.waiters > 0 ? format_duration(lock.longest_wait) : "-",
                   lock.holders > 0 ? format_duration(lock.held) : "-",
                   lock.grants ? brief(*lock.grants) + "/s" : "-", plain(lock.metadata)},
         .sample = lock.waiters > 9   ? coloured(hot)
                   : lock.waiters > 0 ? coloured(warm)
                                      : static_cast<attr_t>(A_NORMAL)});
  }
  return list;
}

/// List of the requests that have waited longest, in the order of the server.
List waits_of(const TopSample& sample, const TopChoice& choice) {
  List list{.headline = {"LONGEST WAITS", "OWNER", "MODE", "WAITED", "LEASE", "METADATA"},
            .widths = {12, 20, 9, 11, 20, 16}};
  for (const auto& wait : sample.reply.long_waits()) {
    if (contains(wait.name(), choice.filter) || contains(wait.owner(), choice.filter)) {
      list.rows.push_back(
          {.cells = {plain(wait.name()), plain(wait.owner()), mode_text(wait.item()),
                     format_duration(milliseconds(wait.waited_ms())),
                     std::to_string(wait.lease_id()), plain(wait.metadata())}});
    }
  }
  return list;
}

List leases_of(const TopSample& sample, const TopChoice& choice) {
  List list{.headline = {"THEIR LEASES", "LEASE", "LEFT", "TTL", "HOLDS", "WAITS"},
            .widths = {12, 20, 11, 11, 6, 6}};
  for (const auto& lease : sample.reply.lease_ends()) {
    if (contains(lease.client(), choice.filter)) {
      // Less than a third of the TTL is left: with three renewals per TTL, two have failed.
      const bool is_late = lease.left_ms() * 3 < lease.ttl_ms();
      list.rows.push_back(
          {.cells = {plain(lease.client()), std::to_string(lease.id()),
                     format_duration(milliseconds(lease.left_ms())),
                     format_duration(milliseconds(lease.ttl_ms())),
                     std::to_string(lease.hold_count()), std::to_string(lease.wait_count())},
           .sample = is_late ? coloured(hot) : static_cast<attr_t>(A_NORMAL)});
    }
  }
  return list;
}

/// Latency for display; "-" without observations.
std::string in_time(const std::optional<double>& seconds) {
  return seconds ? format_short(std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::duration<double>(*seconds)))
                 : "-";
}

/// Key while the filter is edited.
void type(TopChoice& choice, int key) {
  if (key == '\n' || key == '\r' || key == KEY_ENTER) {
    choice.is_typing = false;
  } else if (key == 27) {
    choice.is_typing = false;
    choice.filter.clear();
  } else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
    if (!choice.filter.empty()) {
      choice.filter.pop_back();
    }
  } else if (key >= 32 && key < 256 && choice.filter.size() < 200) {
    // Printable bytes, which include those of UTF-8. Other key codes of ncurses begin at 256.
    choice.filter += static_cast<char>(key);
  }
}

void scroll_by(TopChoice& choice, int rows) {
  const auto wanted = static_cast<std::ptrdiff_t>(choice.scrolled) + rows;
  // The server returns at most 200 rows.
  choice.scrolled = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(wanted, 0, 199));
}

/// Applies a command key to the choice. False: the key quits.
bool apply_key(TopChoice& choice, int key) {
  switch (key) {
    case 'q':
    case 'Q': return false;
    case 'w': choice.order = TopOrder::waiters; break;
    case 't': choice.order = TopOrder::longest_wait; break;
    case 'h': choice.order = TopOrder::held; break;
    case 'r': choice.order = TopOrder::grants; break;
    case 'n': choice.order = TopOrder::name; break;
    case '0': choice.part = TopChoice::Part::all; break;
    case '1': choice.part = TopChoice::Part::locks; break;
    case '2': choice.part = TopChoice::Part::waits; break;
    case '3': choice.part = TopChoice::Part::leases; break;
    case '/':
      choice.is_typing = true;
      choice.filter.clear();
      break;
    case 27: choice.filter.clear(); break;
    case ' ':
    case 'p': choice.is_paused = !choice.is_paused; break;
    case '+': choice.interval = std::min(choice.interval * 2, interval_max); break;
    case '-': choice.interval = std::max(choice.interval / 2, TopChoice::interval_min); break;
    case '?': choice.shows_help = !choice.shows_help; break;
    case KEY_DOWN: scroll_by(choice, 1); break;
    case KEY_UP: scroll_by(choice, -1); break;
    case KEY_NPAGE: scroll_by(choice, 10); break;
    case KEY_PPAGE: scroll_by(choice, -10); break;
    case KEY_HOME: choice.scrolled = 0; break;
    default: break;
  }
  return true;
}

constexpr std::array help_lines{
    "w t h r n    sort by waiters, longest wait, time held, grants per second, name",
    "/            filter by name or owner; Escape clears the filter",
    "0 1 2 3      show everything, locks, waits, leases",
    "arrows       scroll; also page up and page down",
    "p or space   pause and resume",
    "+ -          longer, shorter interval",
    "q            quit",
};

}  // namespace

Result<TopScreen> TopScreen::open(std::string title) {
  // Before the start of ncurses, which needs the character set of the terminal.
  std::setlocale(LC_ALL, "");
  // Without a delay, a single Escape is recognized at once.
  set_escdelay(25);
  // Not initscr(), which ends the process if it does not know the terminal.
  if (newterm(nullptr, stdout, stdin) == nullptr) {
    const auto* name = std::getenv("TERM");
    return fail(Errc::unsupported, "the terminal \"" + std::string(name == nullptr ? "" : name) +
                                       "\" is not supported; use --once");
  }
  // Keys without Enter and without echo; cursor keys as one code; getch() never blocks.
  cbreak();
  noecho();
  nonl();
  curs_set(0);
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  if (has_colors()) {
    start_color();
    // -1 below is the background of the terminal.
    use_default_colors();
    init_pair(good, COLOR_GREEN, -1);
    init_pair(warm, COLOR_YELLOW, -1);
    init_pair(hot, COLOR_RED, -1);
  }
  return TopScreen(std::move(title));
}

TopScreen::TopScreen(TopScreen&& other) noexcept
    : title_(std::move(other.title_)), is_open_(std::exchange(other.is_open_, false)) {}

void TopScreen::close() noexcept {
  if (std::exchange(is_open_, false)) {
    endwin();
  }
}

TopScreen::Action TopScreen::take_keys(TopChoice& choice) {
  auto action = Action::nothing;
  // Until no key is pending, so that a burst of keys costs one redraw.
  for (int key = getch(); key != ERR; key = getch()) {
    action = Action::redraw;
    if (key == KEY_RESIZE) {
      // ncurses has the new size; redraw everything.
      clear();
    } else if (choice.is_typing) {
      type(choice, key);
    } else if (!apply_key(choice, key)) {
      return Action::quit;
    }
  }
  return action;
}

void TopScreen::draw(const TopSample* sample, const TopChoice& choice, std::string_view trouble) {
  erase();
  put(0, 0, "tenure top  " + title_, A_BOLD);
  if (choice.shows_help) {
    for (std::size_t line = 0; line < help_lines.size(); ++line) {
      put(static_cast<int>(line) + 2, 2, help_lines[line]);
    }
  } else if (sample != nullptr) {
    draw_head(*sample, choice);
    draw_parts(*sample, choice);
  } else {
    put(2, 0, trouble.empty() ? "loading ..." : "");
  }
  draw_foot(choice, trouble);
  refresh();
}

void TopScreen::draw_head(const TopSample& sample, const TopChoice& choice) {
  const auto& reply = sample.reply;
  put(0, static_cast<int>(title_.size()) + 14,
      "leader " + plain(reply.leader_address()) + " (member " + std::to_string(reply.leader_id()) +
          " of " + std::to_string(reply.members_size()) + ")  every " +
          format_duration(choice.interval) + (choice.is_paused ? "  paused" : ""));
  put(1, 0,
      "locks " + grouped(reply.locks()) + "  holds " + grouped(reply.holds()) + "  waits " +
          grouped(reply.waits()) + "  leases " + grouped(reply.leases()) +
          (reply.has_space() ? "" : "  THE DISK IS FULL"),
      reply.has_space() ? coloured(good) : coloured(hot));
  if (!sample.rates) {
    return;
  }
  const auto& rates = *sample.rates;
  put(2, 0,
      "granted " + brief(rates.granted) + "/s  released " + brief(rates.released) + "/s  expired " +
          brief(rates.expired) + "/s  deadlocks " + brief(rates.deadlocks) + "/s  renewed " +
          brief(rates.renewed) + "/s  commands " + brief(rates.commands) + "/s");
  put(3, 0,
      "acquire p50 " + in_time(rates.acquire_p50) + " p99 " + in_time(rates.acquire_p99) +
          "  commit p50 " + in_time(rates.commit_p50) + " p99 " + in_time(rates.commit_p99) +
          (reply.is_complete() ? "" : "  (of the oldest waits only)"));
}

void TopScreen::draw_parts(const TopSample& sample, const TopChoice& choice) {
  // One row at the bottom is for the keys, the filter or an error.
  const int room = std::max(LINES - head_rows - 1, 0);
  using Part = TopChoice::Part;
  switch (choice.part) {
    case Part::locks: draw_list(locks_of(sample, choice), head_rows, room, choice.scrolled); return;
    case Part::waits: draw_list(waits_of(sample, choice), head_rows, room, choice.scrolled); return;
    case Part::leases:
      draw_list(leases_of(sample, choice), head_rows, room, choice.scrolled);
      return;
    case Part::all: break;
  }
  // Half of the space for the locks, a quarter each for waits and leases.
  const int locks = (room + 1) / 2;
  const int waits = (room - locks + 1) / 2;
  draw_list(locks_of(sample, choice), head_rows, locks, choice.scrolled);
  draw_list(waits_of(sample, choice), head_rows + locks, waits, choice.scrolled);
  draw_list(leases_of(sample, choice), head_rows + locks + waits, room - locks - waits,
            choice.scrolled);
}

void TopScreen::draw_foot(const TopChoice& choice, std::string_view trouble) {
  if (choice.is_typing) {
    put(LINES - 1, 0, "filter: " + plain(choice.filter) + "_", A_BOLD);
  } else if (!trouble.empty()) {
    put(LINES - 1, 0, sanitized(trouble), coloured(hot));
  } else {
    put(LINES - 1, 0,
        (choice.filter.empty() ? std::string() : "filter: " + plain(choice.filter) + "   ") +
            "w t h r n sort  / filter  0-3 lists  p pause  ? help  q quit",
        A_DIM);
  }
}

}  // namespace tenure::cli
