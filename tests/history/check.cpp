#include "history/check.hpp"

#include <algorithm>
#include <utility>

#include "history/lines.hpp"

namespace tenure::history {

void Findings::add(char property, std::string what) {
  ++counts_[property];
  if (told_.size() < told_max) {
    told_.push_back({.property = property, .what = std::move(what)});
  }
}

Verdict check(const History& history) {
  Verdict verdict;
  const auto promises = [&](char property) {
    return history.properties.find(property) != std::string::npos;
  };
  Findings all;
  for (const auto& sentence : history.nonsense) {
    all.add('?', sentence);
  }
  check_exclusion(history, all);
  check_tokens(history, all);
  verdict.stale_writes = check_storage(history, all);
  check_once(history, all);
  check_order(history, all);
  check_progress(history, all);
  check_watchers(history, all);
  check_deadlocks(history, all);
  if (promises('L')) {
    verdict.names_searched = check_linearizable(history, all);
  }
  for (const auto& violation : all.told()) {
    if (violation.property == '?' || promises(violation.property)) {
      verdict.findings.add(violation.property, violation.what);
    }
  }
  for (const auto& [property, count] : all.counts()) {
    if (property == '?' || promises(property)) {
      verdict.findings.set_count(property, count);
    }
  }
  return verdict;
}

std::string Verdict::words(const History& history) const {
  std::string text;
  for (const auto& [kind, count] : history.counts) {
    text += std::string(to_string(kind)) + " " + std::to_string(count) + "\n";
  }
  text += "stale writes refused " + std::to_string(stale_writes) + "\n";
  text += "names searched exhaustively " + std::to_string(names_searched) + "\n";
  for (const auto property : history.properties) {
    const auto found = findings.counts().find(property);
    text += std::string("violations of ") + property + " " +
            std::to_string(found == findings.counts().end() ? 0 : found->second) + "\n";
  }
  for (const auto& violation : findings.told()) {
    text += std::string(1, violation.property) + ": " + violation.what + "\n";
  }
  return text;
}

}  // namespace tenure::history
