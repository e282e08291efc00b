#include "history/check.hpp"

#include <algorithm>
#include <utility>

#include "history/lines.hpp"

namespace tenure::history {

void Findings::add(char property, std::string what) {
  if (++counts_[property] <= reported_max) {
    reported_.push_back({.property = property, .what = std::move(what)});
  }
}

CheckResult check(const History& history) {
  CheckResult result;
  const auto promises = [&](char property) {
    return history.properties.find(property) != std::string::npos;
  };
  Findings all;
  for (const auto& sentence : history.contradictions) {
    all.add('?', sentence);
  }
  check_exclusion(history, all);
  check_tokens(history, all);
  result.stale_writes = check_storage(history, all);
  check_once(history, all);
  check_order(history, all);
  check_progress(history, all);
  check_watchers(history, all);
  check_deadlocks(history, all);
  if (promises('L')) {
    result.names_searched = check_linearizable(history, all);
  }
  for (const auto& violation : all.reported()) {
    if (violation.property == '?' || promises(violation.property)) {
      result.findings.add(violation.property, violation.what);
    }
  }
  for (const auto& [property, count] : all.counts()) {
    if (property == '?' || promises(property)) {
      result.findings.set_count(property, count);
    }
  }
  return result;
}

std::string CheckResult::describe(const History& history) const {
  std::string text;
  for (const auto& [kind, count] : history.counts) {
    text += std::string(to_string(kind)) + " " + std::to_string(count) + "\n";
  }
  text += "stale writes rejected " + std::to_string(stale_writes) + "\n";
  text += "names searched exhaustively " + std::to_string(names_searched) + "\n";
  for (const auto property : history.properties) {
    const auto found = findings.counts().find(property);
    text += std::string("violations of ") + property + " " +
            std::to_string(found == findings.counts().end() ? 0 : found->second) + "\n";
  }
  for (const auto& violation : findings.reported()) {
    text += std::string(1, violation.property) + ": " + violation.what + "\n";
  }
  return text;
}

}  // namespace tenure::history
