#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "cli/top_look.hpp"

namespace tenure::cli {

/// What a person at the terminal chose to see.
struct TopChoice {
  enum class Part : std::uint8_t { all, locks, waits, leases };

  Part part = Part::all;
  TopOrder order = TopOrder::waiters;
  std::string filter{};
  bool is_typing = false;  ///< The filter, at the moment.
  bool is_paused = false;
  bool shows_help = false;
  std::size_t scrolled = 0;  ///< Rows of each list that are above the screen.
  /// Shortest interval between two refreshes.
  static constexpr std::chrono::milliseconds interval_min{250};
  std::chrono::milliseconds interval{2000};
};

/// The terminal while it is ours, by ncurses. At its end it is as it was. One at a time, one
/// thread.
class TopScreen {
 public:
  /// `unsupported` if the terminal is none that ncurses knows.
  [[nodiscard]] static Result<TopScreen> open(std::string title);
  TopScreen(TopScreen&& other) noexcept;
  TopScreen& operator=(TopScreen&&) = delete;
  TopScreen(const TopScreen&) = delete;
  TopScreen& operator=(const TopScreen&) = delete;
  ~TopScreen() { close(); }
  /// Gives the terminal back before the end.
  void close() noexcept;

  /// Nothing was seen yet: null. `trouble`: why there is nothing newer.
  void draw(const TopLook* look, const TopChoice& choice, std::string_view trouble);

  enum class Wish : std::uint8_t { nothing, redraw, quit };
  /// Takes the keys that were pressed, without waiting.
  [[nodiscard]] Wish take_keys(TopChoice& choice);

 private:
  explicit TopScreen(std::string title) : title_(std::move(title)) {}

  void draw_head(const TopLook& look, const TopChoice& choice);
  void draw_parts(const TopLook& look, const TopChoice& choice);
  void draw_foot(const TopChoice& choice, std::string_view trouble);

  std::string title_;
  bool is_open_ = true;
};

}  // namespace tenure::cli
