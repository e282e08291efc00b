#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "history/history.hpp"

namespace tenure::history {

/// What is not as promised. The letters are those of the table in tests/README.md; `?` is a history
/// that contradicts itself.
struct Violation {
  char property = '?';
  std::string what;
};

/// Collects violations of one property. Says only so many in words: one defect can break thousands.
class Findings {
 public:
  static constexpr std::size_t told_max = 20;

  void add(char property, std::string what);
  void set_count(char property, std::size_t count) { counts_[property] = count; }
  [[nodiscard]] const std::vector<Violation>& told() const noexcept { return told_; }
  [[nodiscard]] const std::map<char, std::size_t>& counts() const noexcept { return counts_; }

 private:
  std::vector<Violation> told_;
  std::map<char, std::size_t> counts_;
};

struct Verdict {
  Findings findings;
  std::size_t stale_writes = 0;    ///< Refused by the storage, as they should be.
  std::size_t names_searched = 0;  ///< Small enough for the exhaustive search.

  [[nodiscard]] bool is_good() const noexcept { return findings.counts().empty(); }
  /// For people: the counts, and what was found.
  [[nodiscard]] std::string words(const History& history) const;
};

/// All properties that the history promises.
[[nodiscard]] Verdict check(const History& history);

// One property each.

/// M: believed intervals of conflicting claims do not overlap. Q: nor those of overlapping ranges,
/// and permits never exceed the capacity.
void check_exclusion(const History& history, Findings& findings);
/// T: who asks after another was answered gets a greater token; an exclusive one is nobody else's.
void check_tokens(const History& history, Findings& findings);
/// S: what storage accepts never goes back to an older token. Returns how many were refused.
std::size_t check_storage(const History& history, Findings& findings);
/// X: one request, one token.
void check_once(const History& history, Findings& findings);
/// F: who was told that it waits is served before whoever asked after that.
void check_order(const History& history, Findings& findings);
/// R: nobody waits for longer than the bound if nothing stands in the way.
void check_progress(const History& history, Findings& findings);
/// E: watchers are told of every grant, once, in order, and of nothing else.
void check_watchers(const History& history, Findings& findings);
/// W: victims of deadlocks were in a cycle, and no cycle stays.
void check_deadlocks(const History& history, Findings& findings);
/// L: reads show what was there; and names with few enough operations have an order of effects that
/// explains all answers. Returns how many names were searched.
std::size_t check_linearizable(const History& history, Findings& findings);

}  // namespace tenure::history
