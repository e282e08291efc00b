#include "cli/suggestion.hpp"

#include <algorithm>
#include <cstddef>

namespace tenure::cli {
namespace {

/// Number of characters to insert, delete, replace or swap with their neighbour that turns `a` into
/// `b`.
std::size_t distance(std::string_view a, std::string_view b) {
  // Table of Wagner and Fischer: distances of the prefixes of `a` to those of `b`.
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      const auto replaced = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({replaced, table[i - 1][j] + 1, table[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::string closest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  // One error in every three letters.
  auto least = word.size() / 3 + 1;
  for (const auto candidate : candidates) {
    // A longer word costs no more than the table of two words of a command line.
    constexpr std::size_t compared_max = 64;
    if (word.size() > compared_max) {
      break;
    }
    if (const auto apart = distance(word, candidate); apart < least) {
      least = apart;
      best = candidate;
    }
  }
  return std::string(best);
}

}  // namespace tenure::cli
