#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "history/history.hpp"

namespace tenure::history {

/// Violation of a property. tests/README.md lists the letters; `?` is a history that contradicts
/// itself.
struct Violation {
  char property = '?';
  std::string what;
};

/// Collects violations. Keeps the text of the first `reported_max` per property and counts the
/// rest, because one defect can cause thousands.
class Findings {
 public:
  static constexpr std::size_t reported_max = 20;

  void add(char property, std::string what);
  void set_count(char property, std::size_t count) { counts_[property] = count; }
  [[nodiscard]] const std::vector<Violation>& reported() const noexcept { return reported_; }
  [[nodiscard]] const std::map<char, std::size_t>& counts() const noexcept { return counts_; }

 private:
  std::vector<Violation> reported_;
  std::map<char, std::size_t> counts_;
};

/// Result of all checks of a history.
struct CheckResult {
  Findings findings;
  std::size_t stale_writes = 0;    ///< Writes that the fence rejected.
  std::size_t names_searched = 0;  ///< Names checked by exhaustive search.

  [[nodiscard]] bool is_valid() const noexcept { return findings.counts().empty(); }
  /// Human-readable report: counts and violations.
  [[nodiscard]] std::string describe(const History& history) const;
};

/// Checks all properties that the history declares.
[[nodiscard]] CheckResult check(const History& history);

// Each function checks one property.

/// M: validity intervals of conflicting holds do not overlap. Q: the same for overlapping ranges;
/// permits never exceed the capacity.
void check_exclusion(const History& history, Findings& findings);
/// T: a request invoked after the grant of another gets a greater token; exclusive tokens are
/// unique.
void check_tokens(const History& history, Findings& findings);
/// S: the tokens of accepted writes never decrease. Returns the number of rejected writes.
std::size_t check_storage(const History& history, Findings& findings);
/// X: a request has one outcome and one token.
void check_once(const History& history, Findings& findings);
/// F: a request observed as queued is granted before any request invoked later.
void check_order(const History& history, Findings& findings);
/// R: without a conflicting hold no request waits longer than the bound.
void check_progress(const History& history, Findings& findings);
/// E: a watcher receives every grant exactly once, in order, and no other grant.
void check_watchers(const History& history, Findings& findings);
/// W: deadlock victims were part of a cycle, and no cycle outlasts the bound.
void check_deadlocks(const History& history, Findings& findings);
/// L: reads show the holders at some moment of the read, and names with few operations have a
/// linearization that explains all replies. Returns the number of names searched.
std::size_t check_linearizable(const History& history, Findings& findings);

}  // namespace tenure::history
