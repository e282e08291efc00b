#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "cli/top_data.hpp"

namespace tenure::cli {

/// View options that the user selects by keys.
struct TopChoice {
  /// Lists to show; one of them alone gets the whole screen.
  enum class Part : std::uint8_t { all, locks, waits, leases };

  Part part = Part::all;
  /// Sort key of the locks.
  TopOrder order = TopOrder::waiters;
  /// Text that names, owners or clients must contain; empty: everything is shown.
  std::string filter{};
  bool is_typing = false;  ///< Whether keys go to the filter.
  /// Whether the view is frozen.
  bool is_paused = false;
  bool shows_help = false;
  std::size_t scrolled = 0;  ///< Rows of each list above the visible ones.
  /// Shortest interval between two refreshes.
  static constexpr std::chrono::milliseconds interval_min{250};
  /// Time between two requests.
  std::chrono::milliseconds interval{2000};
};

/// Full-screen view by ncurses. Restores the terminal at the end. At most one instance; not thread
/// safe. ncurses keeps its state in global variables, which is why there can be only one.
class TopScreen {
 public:
  /// `unsupported` if ncurses does not know the terminal.
  [[nodiscard]] static Result<TopScreen> open(std::string title);
  TopScreen(TopScreen&& other) noexcept;
  TopScreen& operator=(TopScreen&&) = delete;
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;
  ~TopScreen() { close(); }
  /// Restores the terminal.
  void close() noexcept;

  /// Draws a sample, null before the first one, and the error of the last poll.
  void draw(const TopSample* sample, const TopChoice& choice, std::string_view trouble);

  enum class Action : std::uint8_t { nothing, redraw, quit };
  /// Handles the pending keys without blocking.
  [[nodiscard]] Action take_keys(TopChoice& choice);

 private:
  explicit TopScreen(std::string title) : title_(std::move(title)) {}

  void draw_head(const TopSample& sample, const TopChoice& choice);
  void draw_parts(const TopSample& sample, const TopChoice& choice);
  void draw_foot(const TopChoice& choice, std::string_view trouble);

  std::string title_;
  /// Whether this object has to restore the terminal; false after a move.
  bool is_open_ = true;
};

}  // namespace tenure::cli
