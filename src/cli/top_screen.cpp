#include "cli/top_screen.hpp"

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

// Its macros are kept out of our headers: it calls things `timeout`, `erase` and `move`.
#define NCURSES_NOMACROS 1
#include <ncurses.h>

#include "cli/latencies.hpp"
#include "cli/locks.hpp"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

constexpr short good = 1;
constexpr short warm = 2;
constexpr short hot = 3;
constexpr int head_rows = 4;
constexpr milliseconds interval_max{60'000};

/// As much of it as fits into so many columns; the rest is blank.
std::string fitted(std::string_view text, std::size_t columns) {
  std::string out;
  std::size_t count = 0;
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

void put(int row, int column, const std::string& text, attr_t look = A_NORMAL) {
  if (row < 0 || row >= LINES || column >= COLS) {
    return;
  }
  attron(static_cast<int>(look));
  mvaddstr(row, column,
           fitted(text, std::min(text.size(), static_cast<std::size_t>(COLS - column))).c_str());
  attroff(static_cast<int>(look));
}

attr_t coloured(short pair) {
  return has_colors() && std::getenv("NO_COLOR") == nullptr ? static_cast<attr_t>(COLOR_PAIR(pair))
                                                            : A_BOLD;
}

/// Rows under a headline; the first column gets what the others leave.
struct List {
  std::vector<std::string> headline{};
  std::vector<std::size_t> widths{};  ///< The first is the least.
  struct Row {
    std::vector<std::string> cells{};
    attr_t look = A_NORMAL;
  };
  std::vector<Row> rows{};
  std::size_t marked = 0;  ///< The column by which it is sorted; 0: none is marked.
};

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
      put(top + row, 0, line(list.rows[index].cells), list.rows[index].look);
    }
  }
}

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

List locks_of(const TopLook& look, const TopChoice& choice) {
  List list{.headline = {"LOCK", "HOLDER", "CLAIM", "WAITING", "LONGEST", "HELD", "GRANTS", "NOTE"},
            .widths = {12, 20, 9, 7, 11, 11, 8, 16},
            .marked = column_of(choice.order)};
  for (const auto& lock : sorted(look.locks, choice.order, choice.filter)) {
    const auto others = lock.holders > 1 ? " +" + std::to_string(lock.holders - 1) : std::string();
    list.rows.push_back(
        {.cells = {plain(lock.name), plain(lock.owner) + others, plain(lock.claim),
                   std::to_string(lock.waiters), lock.waiters > 0 ? spoken(lock.longest_wait) : "-",
                   lock.holders > 0 ? spoken(lock.held) : "-",
                   lock.grants ? brief(*lock.grants) + "/s" : "-", plain(lock.note)},
         .look = lock.waiters > 9   ? coloured(hot)
                 : lock.waiters > 0 ? coloured(warm)
                                    : static_cast<attr_t>(A_NORMAL)});
  }
  return list;
}

List waits_of(const TopLook& look, const TopChoice& choice) {
  List list{.headline = {"LONGEST WAITS FOR", "WHO", "CLAIM", "WAITED", "LEASE", "NOTE"},
            .widths = {12, 20, 9, 11, 20, 16}};
  for (const auto& wait : look.said.long_waits()) {
    if (contains(wait.name(), choice.filter) || contains(wait.owner(), choice.filter)) {
      list.rows.push_back({.cells = {plain(wait.name()), plain(wait.owner()), claim_of(wait.item()),
                                     spoken(milliseconds(wait.waited_ms())),
                                     std::to_string(wait.lease_id()), plain(wait.metadata())}});
    }
  }
  return list;
}

List leases_of(const TopLook& look, const TopChoice& choice) {
  List list{.headline = {"LEASES OF THESE", "LEASE", "LEFT", "TTL", "HOLDS", "WAITS"},
            .widths = {12, 20, 11, 11, 6, 6}};
  for (const auto& lease : look.said.lease_ends()) {
    if (contains(lease.client(), choice.filter)) {
      const bool is_late = lease.left_ms() * 3 < lease.ttl_ms();
      list.rows.push_back(
          {.cells = {plain(lease.client()), std::to_string(lease.id()),
                     spoken(milliseconds(lease.left_ms())), spoken(milliseconds(lease.ttl_ms())),
                     std::to_string(lease.hold_count()), std::to_string(lease.wait_count())},
           .look = is_late ? coloured(hot) : static_cast<attr_t>(A_NORMAL)});
    }
  }
  return list;
}

std::string in_time(const std::optional<double>& seconds) {
  return seconds ? spoken_briefly(std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::duration<double>(*seconds)))
                 : "-";
}

/// A letter of the filter, or the end of it.
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
    choice.filter += static_cast<char>(key);
  }
}

void scroll_by(TopChoice& choice, int rows) {
  const auto wanted = static_cast<std::ptrdiff_t>(choice.scrolled) + rows;
  choice.scrolled = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(wanted, 0, 199));
}

/// A key that is a command. False: it says quit.
bool obey(TopChoice& choice, int key) {
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
    "w t h r n    sort by waiters, longest wait, time held, grants a second, name",
    "/            show only what contains what you type; Escape shows all again",
    "0 1 2 3      everything; locks, waits, leases alone",
    "arrows       scroll, also page up and page down",
    "p or space   stop and go on",
    "+ -          ask less often, more often",
    "q            quit",
};

}  // namespace

Result<TopScreen> TopScreen::open(std::string title) {
  std::setlocale(LC_ALL, "");
  // So that Escape is one at once.
  set_escdelay(25);
  if (newterm(nullptr, stdout, stdin) == nullptr) {
    const auto* name = std::getenv("TERM");
    return fail(Errc::unsupported, "the terminal \"" + std::string(name == nullptr ? "" : name) +
                                       "\" is not known; --once prints without it");
  }
  cbreak();
  noecho();
  nonl();
  curs_set(0);
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  if (has_colors()) {
    start_color();
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

TopScreen::Wish TopScreen::take_keys(TopChoice& choice) {
  auto wish = Wish::nothing;
  for (int key = getch(); key != ERR; key = getch()) {
    wish = Wish::redraw;
    if (key == KEY_RESIZE) {
      // ncurses knows the new size already; all of it has to be drawn again.
      clear();
    } else if (choice.is_typing) {
      type(choice, key);
    } else if (!obey(choice, key)) {
      return Wish::quit;
    }
  }
  return wish;
}

void TopScreen::draw(const TopLook* look, const TopChoice& choice, std::string_view trouble) {
  erase();
  put(0, 0, "tenure top  " + title_, A_BOLD);
  if (choice.shows_help) {
    for (std::size_t line = 0; line < help_lines.size(); ++line) {
      put(static_cast<int>(line) + 2, 2, help_lines[line]);
    }
  } else if (look != nullptr) {
    draw_head(*look, choice);
    draw_parts(*look, choice);
  } else {
    put(2, 0, trouble.empty() ? "asking ..." : "");
  }
  draw_foot(choice, trouble);
  refresh();
}

void TopScreen::draw_head(const TopLook& look, const TopChoice& choice) {
  const auto& said = look.said;
  put(0, static_cast<int>(title_.size()) + 14,
      "leader " + plain(said.leader_address()) + " (member " + std::to_string(said.leader_id()) +
          " of " + std::to_string(said.members_size()) + ")  every " + spoken(choice.interval) +
          (choice.is_paused ? "  paused" : ""));
  put(1, 0,
      "locks " + grouped(said.locks()) + "  holds " + grouped(said.holds()) + "  waits " +
          grouped(said.waits()) + "  leases " + grouped(said.leases()) +
          (said.has_space() ? "" : "  THE DISK IS FULL"),
      said.has_space() ? coloured(good) : coloured(hot));
  if (!look.rates) {
    return;
  }
  const auto& rates = *look.rates;
  put(2, 0,
      "granted " + brief(rates.granted) + "/s  released " + brief(rates.released) + "/s  expired " +
          brief(rates.expired) + "/s  deadlocks " + brief(rates.deadlocks) + "/s  renewed " +
          brief(rates.renewed) + "/s  commands " + brief(rates.commands) + "/s");
  put(3, 0,
      "acquire p50 " + in_time(rates.acquire_p50) + " p99 " + in_time(rates.acquire_p99) +
          "  commit p50 " + in_time(rates.commit_p50) + " p99 " + in_time(rates.commit_p99) +
          (said.is_complete() ? "" : "  (of the oldest waits only)"));
}

void TopScreen::draw_parts(const TopLook& look, const TopChoice& choice) {
  const int room = std::max(LINES - head_rows - 1, 0);
  using Part = TopChoice::Part;
  switch (choice.part) {
    case Part::locks: draw_list(locks_of(look, choice), head_rows, room, choice.scrolled); return;
    case Part::waits: draw_list(waits_of(look, choice), head_rows, room, choice.scrolled); return;
    case Part::leases: draw_list(leases_of(look, choice), head_rows, room, choice.scrolled); return;
    case Part::all: break;
  }
  const int locks = (room + 1) / 2;
  const int waits = (room - locks + 1) / 2;
  draw_list(locks_of(look, choice), head_rows, locks, choice.scrolled);
  draw_list(waits_of(look, choice), head_rows + locks, waits, choice.scrolled);
  draw_list(leases_of(look, choice), head_rows + locks + waits, room - locks - waits,
            choice.scrolled);
}

void TopScreen::draw_foot(const TopChoice& choice, std::string_view trouble) {
  if (choice.is_typing) {
    put(LINES - 1, 0, "filter: " + plain(choice.filter) + "_", A_BOLD);
  } else if (!trouble.empty()) {
    put(LINES - 1, 0, harmless(trouble), coloured(hot));
  } else {
    put(LINES - 1, 0,
        (choice.filter.empty() ? std::string() : "only " + plain(choice.filter) + "   ") +
            "w t h r n sort  / filter  0-3 parts  p pause  ? help  q quit",
        A_DIM);
  }
}

}  // namespace tenure::cli
