#include <algorithm>
#include <vector>

#include "history/check.hpp"

namespace tenure::history {
namespace {

/// A time in which a client believes to hold an item.
struct Held {
  Interval when;
  const Request* request{};
  Item item;  ///< As it was then: a downgrade weakens it.
};

/// Cuts a belief where the hold was weakened. A client believes in the weaker mode from the moment
/// on when it begins to give up the stronger.
void add_held(std::vector<Held>& all, const Use& use) {
  for (auto part : use.request->belief.parts()) {
    auto item = *use.item;
    for (const auto& weaker : use.request->weaker) {
      const auto cut = std::clamp(weaker.at, part.begin, part.end);
      all.push_back(
          {.when = {.begin = part.begin, .end = cut}, .request = use.request, .item = item});
      part.begin = cut;
      item.mode = weaker.mode;
    }
    all.push_back({.when = part, .request = use.request, .item = item});
  }
  std::erase_if(all, [](const Held& held) { return held.when.begin >= held.when.end; });
}

std::string words(const Held& held) {
  return words(held.item) + " by " + words(*held.request) + " from " +
         std::to_string(held.when.begin) + " to " + std::to_string(held.when.end);
}

/// A hold that was entered again, or made stronger, is one hold, whether its token stays or not.
bool is_one_hold(const Held& left, const Held& right) {
  const bool reenters =
      left.request->asking == Asking::reenter || right.request->asking == Asking::reenter;
  return left.request == right.request || (left.request->owner == right.request->owner && reenters);
}

void check_place(const std::vector<Held>& all, Findings& findings) {
  std::vector<const Held*> open;
  for (const auto& held : all) {
    std::erase_if(open, [&](const Held* other) { return other->when.end <= held.when.begin; });
    std::uint32_t permits = held.item.permits.has_value() ? held.item.permits->wanted : 0;
    for (const auto* other : open) {
      if (is_one_hold(held, *other)) {
        continue;
      }
      if (conflict(held.item, other->item)) {
        findings.add(held.item.range.has_value() ? 'Q' : 'M',
                     words(*other) + " and " + words(held));
      }
      permits += other->item.permits.has_value() ? other->item.permits->wanted : 0;
    }
    if (held.item.permits.has_value() && permits > held.item.permits->capacity) {
      findings.add(
          'Q', std::to_string(permits) + " permits are believed to be held with " + words(held));
    }
    open.push_back(&held);
  }
}

}  // namespace

void check_exclusion(const History& history, Findings& findings) {
  for (const auto& [place, uses] : history.places) {
    std::vector<Held> all;
    for (const auto& use : uses) {
      add_held(all, use);
    }
    std::ranges::stable_sort(all, {}, [](const Held& held) { return held.when.begin; });
    check_place(all, findings);
  }
}

}  // namespace tenure::history
