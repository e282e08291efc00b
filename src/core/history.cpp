#include "core/history.hpp"

#include <algorithm>

namespace tenure::core {

const History::Entry* History::find(RequestId request) const {
  const auto it = entries_.find(request);
  return it == entries_.end() ? nullptr : &it->second;
}

void History::note(RequestId request, Entry entry) {
  const auto [it, is_new] = entries_.try_emplace(request);
  if (!is_new && it->second.life == Life::over) {
    finished_.erase({it->second.since, request});
  }
  if (entry.life == Life::over) {
    finished_.insert({entry.since, request});
  }
  it->second = std::move(entry);
}

void History::retire(RequestId request, Revision when) {
  const auto it = entries_.find(request);
  if (it == entries_.end() || it->second.life == Life::over) {
    return;
  }
  it->second.life = Life::over;
  it->second.since = when;
  finished_.insert({when, request});
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
           const auto* entry = find(finished.second);
           return entry != nullptr && entry->life == Life::over && entry->since == finished.first;
         });
}

}  // namespace tenure::core
