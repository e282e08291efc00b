#include "core/claim_index.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <utility>

namespace tenure::core {
namespace {

// Projection: the starts are sorted by text and not by address, which differs between members.
const std::string& text_of(const std::string* start) {
  return *start;
}

}  // namespace

ClaimIndex::ClaimIndex(const RangeIndex& ranges, const Filter& is_listed) {
  collect(ranges, is_listed);
  count_modes();
  sort_by_turn();
  fill_lists();
}

// A name is a space with one position: width_ stays 1, and all spans are [0, 0].
ClaimIndex::ClaimIndex(std::vector<Claim> claims) : claims_(std::move(claims)) {
  by_turn_.resize(claims_.size());
  std::iota(by_turn_.begin(), by_turn_.end(), Id{});
  count_modes();
  sort_by_turn();
  fill_lists();
}

void ClaimIndex::collect(const RangeIndex& ranges, const Filter& is_listed) {
  std::vector<const std::string*> starts;
  std::vector<const std::optional<std::string>*> ends;
  ranges.held.visit_ranges([&](const auto& start, const auto& end, const RangeIndex::Held& held) {
    starts.push_back(&start);
    ends.push_back(&end);
    claims_.push_back({.token = held.token, .mode = held.mode});
  });
  const auto holds = static_cast<std::ptrdiff_t>(starts.size());
  ranges.queued.visit_ranges(
      [&](const auto& start, const auto& end, const RangeIndex::Queued& queued) {
        starts.push_back(&start);
        ends.push_back(&end);
        claims_.push_back({.turn = queued.turn, .mode = queued.mode});
      });
  // Holds and waits are each sorted already, so one merge suffices.
  std::ranges::merge(starts.begin(), starts.begin() + holds, starts.begin() + holds, starts.end(),
                     std::back_inserter(starts_), {}, text_of, text_of);
  const auto twice = std::ranges::unique(starts_, {}, text_of);
  starts_.erase(twice.begin(), twice.end());
  // A power of two makes all leaves equally deep, so that node numbers need no child pointers.
  width_ = std::bit_ceil(std::max<std::uint32_t>(1, static_cast<std::uint32_t>(starts_.size())));
  for (Id id = 0; id < claims_.size(); ++id) {
    if (!is_listed || is_listed(claims_[id])) {
      claims_[id].span = span_of(*starts[id], *ends[id]);
      by_turn_.push_back(id);
    }
  }
}

void ClaimIndex::count_modes() {
  std::array<bool, all_lock_modes.size()> is_used{};
  for (const auto id : by_turn_) {
    is_used[static_cast<std::size_t>(claims_[id].mode)] = true;
  }
  for (const auto mode : all_lock_modes) {
    if (is_used[static_cast<std::size_t>(mode)]) {
      slots_[static_cast<std::size_t>(mode)] = modes_.size();
      modes_.push_back(mode);
    }
  }
}

void ClaimIndex::sort_by_turn() {
  std::ranges::sort(by_turn_, [&](Id left, Id right) {
    return claims_[left].turn == claims_[right].turn ? left < right
                                                     : claims_[left].turn < claims_[right].turn;
  });
}

// Two passes in turn order, counting sizes and then placing entries, so that all lists share one
// allocation and are sorted by turn.
void ClaimIndex::fill_lists() {
  const auto for_each_entry = [&](const auto& visit) {
    for (const auto id : by_turn_) {
      visit_lists_of(claims_[id], [&](ListId list) { visit(list, id); });
    }
  };
  const std::size_t nodes = 2UL * width_;
  offsets_.assign((nodes * 2 * modes_.size()) + 1, 0);
  // Counting sort: after the prefix sum, offsets_[n] is the start of list n.
  for_each_entry([&](ListId list, Id) { ++offsets_[list + 1]; });
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  entries_.resize(offsets_.back());
  auto next = heads();
  for_each_entry([&](ListId list, Id id) { entries_[next[list]++] = id; });
}

std::span<const ClaimIndex::Id> ClaimIndex::of_turn(const Turn& turn) const {
  const auto found =
      std::ranges::equal_range(by_turn_, turn, {}, [&](Id id) { return claims_[id].turn; });
  return {found.begin(), found.end()};
}

ClaimIndex::Span ClaimIndex::span_of(const std::string& start,
                                     const std::optional<std::string>& end) const {
  const auto first = std::ranges::lower_bound(starts_, start, {}, text_of);
  // The end of a range need not be a start. Positions from the first start that is not less than it
  // lie outside, so the one before is the last inside.
  const auto behind =
      end ? std::ranges::lower_bound(first, starts_.end(), *end, {}, text_of) : starts_.end();
  return {.first = static_cast<std::uint32_t>(first - starts_.begin()),
          .last = static_cast<std::uint32_t>(behind - starts_.begin() - 1)};
}

}  // namespace tenure::core
