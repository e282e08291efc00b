#include "server/events/watch_hub.hpp"

#include <algorithm>
#include <expected>
#include <utility>

#include <absl/strings/string_view.h>

namespace tenure::server {

Watch::Events Watch::take(std::size_t events_max) {
  Events taken;
  while (!pending_.empty()) {
    const bool is_new_revision =
        taken.empty() || taken.back()->revision != pending_.front()->revision;
    if (taken.size() >= events_max && is_new_revision) {
      break;
    }
    taken.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  return taken;
}

void Watch::offer(std::shared_ptr<const core::Event> event) {
  if (cancelled_at_ || replay_from_ || event->revision < spec_.start ||
      !spec_.types.contains(event->type)) {
    return;
  }
  if (pending_.size() < spec_.buffer_events_max) {
    pending_.push_back(std::move(event));
    return;
  }
  // Drops all pending events, which frees their memory at once. The reader resumes from the first
  // dropped revision, so it neither misses an event nor receives one twice.
  cancelled_at_ = resume_revision(event->revision);
  pending_.clear();
}

core::Revision Watch::resume_revision(core::Revision otherwise) const {
  return pending_.empty() ? replay_from_.value_or(otherwise) : pending_.front()->revision;
}

std::expected<std::shared_ptr<Watch>, WatchHub::Compacted> WatchHub::add(
    WatchSpec spec, const core::State& state, std::function<void()> ready) {
  const auto compacted = state.events.compact_revision();
  const bool replays = spec.start != core::Revision{};
  if (replays && spec.start <= compacted) {
    return std::unexpected(Compacted{compacted});
  }
  auto watch = std::make_shared<Watch>();
  watch->spec_ = std::move(spec);
  watch->ready_ = std::move(ready);
  const auto& requested = watch->spec_;
  if (replays) {
    watch->replay_from_ = requested.start;
    replay(*watch, state);
  }
  if (requested.match == Match::prefix) {
    ++lengths_[requested.key.size()];
  }
  table_of(requested.match)[requested.key].push_back(watch);
  last_ = std::max(last_, state.revision);
  ++count_;
  if (metrics_ != nullptr) {
    metrics_->watch_began();
  }
  return watch;
}

void WatchHub::replay(Watch& watch, const core::State& state) {
  if (!watch.replay_from_) {
    return;
  }
  if (*watch.replay_from_ <= state.events.compact_revision()) {
    cancel(watch, *watch.replay_from_);
    return;
  }
  const auto& spec = watch.spec_;
  const auto events = state.events.all().in_order();
  auto it = std::ranges::lower_bound(events, *watch.replay_from_, {}, &core::Event::revision);
  core::Revision last{};
  for (std::size_t seen = 0; it != events.end(); ++it, ++seen) {
    const core::Event& event = *it;
    if (seen >= replay_max && event.revision != last) {
      watch.replay_from_ = event.revision;
      return;
    }
    last = event.revision;
    const bool has_key = spec.match == Match::exact ? event.item.name == spec.key
                                                    : event.item.name.starts_with(spec.key);
    if (has_key && spec.types.contains(event.type)) {
      watch.pending_.push_back(std::make_shared<const core::Event>(event));
    }
  }
  watch.replay_from_.reset();
  // Replayed events do not count as the backlog of a slow reader.
  watch.spec_.buffer_events_max += watch.pending_.size();
}

void WatchHub::cancel(Watch& watch, core::Revision resume) {
  watch.cancelled_at_ = resume;
  watch.replay_from_.reset();
  watch.pending_.clear();
  ++cancelled_total_;
  if (metrics_ != nullptr) {
    metrics_->watch_cut();
  }
}

void WatchHub::remove(const std::shared_ptr<Watch>& watch) {
  auto& table = table_of(watch->spec_.match);
  const auto it = table.find(watch->spec_.key);
  if (it == table.end() || std::erase(it->second, watch) == 0) {
    return;
  }
  if (it->second.empty()) {
    table.erase(it);
  }
  if (watch->spec_.match == Match::prefix) {
    const auto length = lengths_.find(watch->spec_.key.size());
    if (--length->second == 0) {
      lengths_.erase(length);
    }
  }
  --count_;
  if (metrics_ != nullptr) {
    metrics_->watch_ended();
  }
}

void WatchHub::applied(const core::Applied& what, const core::State& /*state*/) {
  last_ = std::max(last_, what.revision);
  if (count_ == 0) {
    return;
  }
  for (const auto& event : what.events) {
    publish(event);
  }
}

// A lagging member gets a snapshot instead of entries. Its watches must not miss the events of
// these entries.
void WatchHub::restored(const core::State& state) {
  const core::Revision start{last_.get() + 1};
  last_ = std::max(last_, state.revision);
  if (count_ == 0) {
    return;
  }
  if (start <= state.events.compact_revision()) {
    cancel_all(start);
  } else {
    for (const auto& event : state.events.since(start)) {
      publish(event);
    }
  }
  settled();
}

void WatchHub::cancel_all(core::Revision start) {
  for (auto* table : {&exact_, &prefixes_}) {
    for (auto& [key, watches] : *table) {
      for (const auto& watch : watches) {
        if (watch->cancelled_at_) {
          continue;
        }
        cancel(*watch, watch->resume_revision(start));
        if (!std::exchange(watch->is_notified_, true)) {
          to_notify_.push_back(watch);
        }
      }
    }
  }
}

void WatchHub::publish(const core::Event& event) {
  // One shared copy for all watches, and none without a watch.
  std::shared_ptr<const core::Event> shared;
  const auto pass_on = [&](const absl::flat_hash_map<std::string, Watches>& table,
                           std::string_view key) {
    // Abseil in Debian is built with its own string_view.
    const auto it = table.find(absl::string_view(key.data(), key.size()));
    if (it == table.end()) {
      return;
    }
    if (!shared) {
      shared = std::make_shared<const core::Event>(event);
    }
    offer(it->second, shared);
  };
  const std::string_view name = event.item.name.view();
  pass_on(exact_, name);
  for (const auto& [length, count] : lengths_) {
    if (length > name.size()) {
      break;
    }
    pass_on(prefixes_, name.substr(0, length));
  }
}

void WatchHub::offer(const Watches& watches, const std::shared_ptr<const core::Event>& event) {
  for (const auto& watch : watches) {
    const bool was_cancelled = watch->cancelled_at_.has_value();
    watch->offer(event);
    if (!was_cancelled && watch->cancelled_at_) {
      ++cancelled_total_;
      if (metrics_ != nullptr) {
        metrics_->watch_cut();
      }
    }
    const bool has_update = watch->has_events() || (watch->cancelled_at_ && !was_cancelled);
    if (has_update && !watch->is_notified_) {
      watch->is_notified_ = true;
      to_notify_.push_back(watch);
    }
  }
}

void WatchHub::settled() {
  for (const auto& weak : std::exchange(to_notify_, {})) {
    if (const auto watch = weak.lock()) {
      // Cleared before the call: new events during it cause another notification.
      watch->is_notified_ = false;
      watch->ready_();
    }
  }
}

}  // namespace tenure::server
