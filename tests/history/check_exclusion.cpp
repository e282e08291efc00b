#include <algorithm>
#include <vector>

#include "history/check.hpp"

namespace tenure::history {
namespace {

/// Interval in which a client considers its hold of an item valid.
struct Held {
  Interval when;
  const Request* request{};
  Item item;  ///< Item in this interval; a downgrade changes the mode.
};

/// Splits the validity of a hold at its downgrades. The weaker mode counts from the moment at which
/// the client starts the downgrade.
void add_held(std::vector<Held>& all, const Use& use) {
  for (auto part : use.request->belief.parts()) {
    auto item = *use.item;
    for (const auto& downgrade : use.request->downgrades) {
      const auto cut = std::clamp(downgrade.at, part.begin, part.end);
      all.push_back(
          {.when = {.begin = part.begin, .end = cut}, .request = use.request, .item = item});
      part.begin = cut;
      item.mode = downgrade.mode;
    }
    all.push_back({.when = part, .request = use.request, .item = item});
  }
  std::erase_if(all, [](const Held& held) { return held.when.begin >= held.when.end; });
}

std::string describe(const Held& held) {
  return describe(held.item) + " by " + describe(*held.request) + " from " +
         std::to_string(held.when.begin) + " to " + std::to_string(held.when.end);
}

/// A re-entered or upgraded hold is one hold, whether its token changes or not.
bool is_one_hold(const Held& left, const Held& right) {
  const bool reenters =
      left.request->policy == WaitPolicy::reenter || right.request->policy == WaitPolicy::reenter;
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
                     describe(*other) + " and " + describe(held));
      }
      permits += other->item.permits.has_value() ? other->item.permits->wanted : 0;
    }
    if (held.item.permits.has_value() && permits > held.item.permits->capacity) {
      findings.add(
          'Q', std::to_string(permits) + " permits are believed to be held with " + describe(held));
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
