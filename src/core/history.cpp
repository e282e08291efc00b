#include "core/history.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace tenure::core {

// Most requests are newer than all that were recorded, which is one comparison.
std::optional<History::Entry> History::find(RequestId request) const {
  if (request > newest_) {
    return std::nullopt;
  }
  if (const auto* token = held_.find(request)) {
    return entry_of(*token);
  }
  const auto* compact = compact_.find(request);
  return compact == nullptr ? std::nullopt : std::optional(entry_of(request, *compact));
}

History::Entry History::entry_of(RequestId request, const CompactEntry& compact) const {
  auto answer = std::visit(
      [&](const auto& kept) -> Answer {
        if constexpr (std::is_same_v<std::decay_t<decltype(kept)>, IsRefused>) {
          return Box(*refusals_.find(request));
        } else {
          return kept;
        }
      },
      compact.answer);
  return {.answer = std::move(answer),
          .since = compact.since,
          .life = compact.life,
          .finished = compact.finished};
}

// A granted request whose hold lives is stored as its token alone, if the token determines the
// whole entry.
void History::record(RequestId request, Entry entry) {
  if (request > newest_) {
    newest_ = request;
  } else {
    // The entry may move between held_ and compact_, so the old one is removed first.
    erase(request);
  }
  const auto* granted = std::get_if<Granted>(&entry.answer);
  if (granted != nullptr && entry == entry_of(granted->token)) {
    held_[request] = granted->token;
    return;
  }
  if (entry.life == Life::over) {
    finished_.insert({entry.since, request});
  }
  auto& compact = compact_[request];
  compact.since = entry.since;
  compact.life = entry.life;
  compact.finished = entry.finished;
  std::visit(
      [&](auto& answer) {
        if constexpr (std::is_same_v<std::decay_t<decltype(answer)>, Box<Refused>>) {
          compact.answer = IsRefused{};
          refusal_bytes_ += bytes_of(*answer);
          refusals_[request] = std::move(*answer);
        } else {
          compact.answer = answer;
        }
      },
      entry.answer);
}

void History::erase(RequestId request) {
  if (held_.erase(request)) {
    return;
  }
  const auto* compact = compact_.find(request);
  if (compact == nullptr) {
    return;
  }
  if (compact->life == Life::over) {
    finished_.erase({compact->since, request});
  }
  if (std::holds_alternative<IsRefused>(compact->answer)) {
    refusal_bytes_ -= bytes_of(*refusals_.find(request));
    refusals_.erase(request);
  }
  compact_.erase(request);
}

void History::retire(RequestId request, Revision when, ClusterTime finished) {
  // A finished request keeps its age, which decides when its answer is forgotten.
  auto entry = find(request);
  if (!entry || entry->life == Life::over) {
    return;
  }
  entry->life = Life::over;
  entry->since = when;
  entry->finished = finished;
  record(request, *std::move(entry));
}

void History::set_finished_times(ClusterTime finished) {
  for (const auto& [since, request] : finished_) {
    compact_[request].finished = finished;
  }
}

// finished_ is in the order of forgetting, so this visits forgotten answers only.
std::size_t History::forget(const Forget& what) {
  std::size_t early = 0;
  for (std::size_t count = 0; count < what.count_max && !finished_.empty(); ++count) {
    const auto request = finished_.front().second;
    const bool is_outdated =
        what.outdated > ClusterTime{} && compact_.find(request)->finished <= what.outdated;
    if (!is_outdated && finished_.size() <= what.finished_max) {
      break;
    }
    early += is_outdated ? 0 : 1;
    compact_.erase(request);
    if (const auto* refused = refusals_.find(request)) {
      refusal_bytes_ -= bytes_of(*refused);
      refusals_.erase(request);
    }
    finished_.pop_front();
  }
  return early;
}

bool History::has_sound_index() const {
  const auto over = std::ranges::count_if(
      compact_, [](const auto& slot) { return slot.second.life == Life::over; });
  const auto refused = std::ranges::count_if(compact_, [this](const auto& slot) {
    return std::holds_alternative<IsRefused>(slot.second.answer) && refusals_.contains(slot.first);
  });
  std::size_t refusal_bytes = 0;
  for (const auto& [request, refusal] : refusals_) {
    refusal_bytes += bytes_of(refusal);
  }
  return static_cast<std::size_t>(over) == finished_.size() && refusal_bytes == refusal_bytes_ &&
         static_cast<std::size_t>(refused) == refusals_.size() &&
         std::ranges::all_of(finished_, [this](const auto& finished) {
           const auto* compact = compact_.find(finished.second);
           return compact != nullptr && compact->life == Life::over &&
                  compact->since == finished.first;
         });
}

}  // namespace tenure::core
