#include "core/history.hpp"

#include <algorithm>

namespace tenure::core {

std::optional<History::Entry> History::find(RequestId request) const {
  if (const auto* token = held_.find(request)) {
    return entry_of(*token);
  }
  const auto* entry = entries_.find(request);
  return entry == nullptr ? std::nullopt : std::optional(*entry);
}

void History::note(RequestId request, Entry entry) {
  if (held_.contains(request)) {
    held_.erase(request);
  } else if (const auto* old = entries_.find(request)) {
    if (old->life == Life::over) {
      finished_.erase({old->since, request});
    }
    entries_.erase(request);
  }
  if (entry.life == Life::over) {
    finished_.insert({entry.since, request});
  }
  const auto* granted = std::get_if<Granted>(&entry.answer);
  if (granted != nullptr && entry == entry_of(granted->token)) {
    held_[request] = granted->token;
  } else {
    entries_[request] = std::move(entry);
  }
}

void History::retire(RequestId request, Revision when) {
  auto entry = find(request);
  if (!entry || entry->life == Life::over) {
    return;
  }
  entry->life = Life::over;
  entry->since = when;
  note(request, *std::move(entry));
}

void History::forget_beyond(std::size_t finished_max) {
  while (finished_.size() > finished_max) {
    entries_.erase(finished_.front().second);
    finished_.pop_front();
  }
}

bool History::has_sound_index() const {
  const auto over = std::ranges::count_if(
      entries_, [](const auto& entry) { return entry.second.life == Life::over; });
  return static_cast<std::size_t>(over) == finished_.size() &&
         std::ranges::all_of(finished_, [this](const auto& finished) {
           const auto* entry = entries_.find(finished.second);
           return entry != nullptr && entry->life == Life::over && entry->since == finished.first;
         });
}

}  // namespace tenure::core
