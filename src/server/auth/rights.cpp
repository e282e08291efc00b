#include "server/auth/rights.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tenure::server::auth {
namespace {

constexpr std::array<std::string_view, 4> level_names{"none", "read", "lock", "admin"};

/// First string after all strings with this prefix, in byte order; nullopt: there is none.
std::optional<std::string> successor_of(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) {
    prefix.pop_back();
  }
  if (prefix.empty()) {
    return std::nullopt;
  }
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

}  // namespace

std::string_view to_string(Verb verb) noexcept {
  return level_names[static_cast<std::size_t>(verb)];
}

std::string_view to_string(Level level) noexcept {
  return level_names[static_cast<std::size_t>(level)];
}

std::optional<Level> level_from(std::string_view word) noexcept {
  const auto* const it = std::ranges::find(level_names, word);
  return it == level_names.end() ? std::nullopt
                                 : std::optional(static_cast<Level>(it - level_names.begin()));
}

Rights::Rights(std::vector<Rule> rules) : rules_(std::move(rules)) {
  std::ranges::stable_sort(rules_, {}, &Rule::prefix);
  const auto same = std::ranges::unique(rules_, {}, &Rule::prefix);
  rules_.erase(same.begin(), same.end());
  // Sorted order puts a prefix before all strings that start with it, so the open rules form a
  // chain and one pass finds all parents.
  std::vector<std::size_t> open;
  for (std::size_t index = 0; index < rules_.size(); ++index) {
    while (!open.empty() && !rules_[index].prefix.starts_with(rules_[open.back()].prefix)) {
      open.pop_back();
    }
    parents_.push_back(open.empty() ? none : open.back());
    open.push_back(index);
  }
}

const Rule* Rights::rule_for(std::string_view name) const {
  const auto it = std::ranges::upper_bound(
      rules_, name, {}, [](const Rule& rule) { return std::string_view(rule.prefix); });
  auto index = it == rules_.begin() ? none : static_cast<std::size_t>(it - rules_.begin()) - 1;
  // The predecessor in byte order is either a prefix of the name or shares one with it; the chain
  // of its parents contains every rule whose prefix matches.
  while (index != none && !name.starts_with(rules_[index].prefix)) {
    index = parents_[index];
  }
  return index == none ? nullptr : &rules_[index];
}

bool Rights::may_any(Verb verb, std::string_view prefix) const {
  // The rule for the prefix itself, or a longer rule that allows a part of the names under it.
  return may(verb, prefix) || std::ranges::any_of(rules_, [&](const Rule& rule) {
           return covers(rule.level, verb) && rule.prefix.starts_with(prefix);
         });
}

bool Rights::may_all(Verb verb, std::string_view prefix) const {
  return may(verb, prefix) && std::ranges::all_of(rules_, [&](const Rule& rule) {
           return covers(rule.level, verb) || !rule.prefix.starts_with(prefix);
         });
}

std::optional<std::string> Rights::skip(std::string_view name) const {
  const auto* rule = rule_for(name);
  // Rights change at the end of the present rule or at the start of a nested one, whichever is
  // first.
  auto next = rule == nullptr ? std::nullopt : successor_of(rule->prefix);
  const auto it = std::ranges::upper_bound(
      rules_, name, {}, [](const Rule& other) { return std::string_view(other.prefix); });
  if (it != rules_.end() && (!next || it->prefix < *next)) {
    next = it->prefix;
  }
  return next;
}

}  // namespace tenure::server::auth
