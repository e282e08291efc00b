#include "core/history.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace tenure::core {

std::optional<History::Entry> History::find(RequestId request) const {
  if (request > newest_) {
    return std::nullopt;
  }
  if (const auto* token = held_.find(request)) {
    return entry_of(*token);
  }
  const auto* line = lines_.find(request);
  return line == nullptr ? std::nullopt : std::optional(entry_of(request, *line));
}

History::Entry History::entry_of(RequestId request, const Line& line) const {
  auto answer = std::visit(
      [&](const auto& kept) -> Answer {
        if constexpr (std::is_same_v<std::decay_t<decltype(kept)>, IsRefused>) {
          return Box(*refusals_.find(request));
        } else {
          return kept;
        }
      },
      line.answer);
  return {.answer = std::move(answer),
          .since = line.since,
          .life = line.life,
          .finished = line.finished};
}

void History::note(RequestId request, Entry entry) {
  if (request > newest_) {
    newest_ = request;
  } else {
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
  auto& line = lines_[request];
  line.since = entry.since;
  line.life = entry.life;
  line.finished = entry.finished;
  std::visit(
      [&](auto& answer) {
        if constexpr (std::is_same_v<std::decay_t<decltype(answer)>, Box<Refused>>) {
          line.answer = IsRefused{};
          refusals_[request] = std::move(*answer);
        } else {
          line.answer = answer;
        }
      },
      entry.answer);
}

void History::erase(RequestId request) {
  if (held_.erase(request)) {
    return;
  }
  const auto* line = lines_.find(request);
  if (line == nullptr) {
    return;
  }
  if (line->life == Life::over) {
    finished_.erase({line->since, request});
  }
  if (std::holds_alternative<IsRefused>(line->answer)) {
    refusals_.erase(request);
  }
  lines_.erase(request);
}

void History::retire(RequestId request, Revision when, ClusterTime finished) {
  auto entry = find(request);
  if (!entry || entry->life == Life::over) {
    return;
  }
  entry->life = Life::over;
  entry->since = when;
  entry->finished = finished;
  note(request, *std::move(entry));
}

void History::set_finished_times(ClusterTime finished) {
  for (const auto& [since, request] : finished_) {
    lines_[request].finished = finished;
  }
}

void History::forget_beyond(std::size_t finished_max) {
  while (finished_.size() > finished_max) {
    const auto request = finished_.front().second;
    lines_.erase(request);
    if (!refusals_.empty()) {
      refusals_.erase(request);
    }
    finished_.pop_front();
  }
}

bool History::has_sound_index() const {
  const auto over = std::ranges::count_if(
      lines_, [](const auto& slot) { return slot.second.life == Life::over; });
  const auto refused = std::ranges::count_if(lines_, [this](const auto& slot) {
    return std::holds_alternative<IsRefused>(slot.second.answer) && refusals_.contains(slot.first);
  });
  return static_cast<std::size_t>(over) == finished_.size() &&
         static_cast<std::size_t>(refused) == refusals_.size() &&
         std::ranges::all_of(finished_, [this](const auto& finished) {
           const auto* line = lines_.find(finished.second);
           return line != nullptr && line->life == Life::over && line->since == finished.first;
         });
}

}  // namespace tenure::core
