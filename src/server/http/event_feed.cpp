#include "server/http/event_feed.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/post.hpp>

#include "server/http/record_json.hpp"
#include "sys/json_writer.hpp"

namespace tenure::server::http {
namespace {

/// One server-sent event. The text is JSON without line breaks, so one `data` line suffices.
std::string server_sent(std::string_view type, std::string_view id, std::string_view text) {
  std::string out = "event: " + std::string(type) + '\n';
  if (!id.empty()) {
    out += "id: " + std::string(id) + '\n';
  }
  return out + "data: " + std::string(text) + "\n\n";
}

constexpr std::string_view slow_reader_detail = "the reader is too slow";

}  // namespace

EventSubscription::EventSubscription(EventFilter filter, std::size_t buffer_max,
                                     std::function<void()> on_ready)
    : filter_(std::move(filter)), buffer_max_(buffer_max), on_ready_(std::move(on_ready)) {}

std::string EventSubscription::take(std::size_t bytes_max) {
  auto out = std::exchange(initial_event_, {});
  while (!pending_.empty() && out.size() < bytes_max) {
    const auto& next = pending_.front();
    const auto& event = next.event();
    // An id in the middle of a revision would make a reconnecting reader skip the rest of it.
    const auto id = next.ends_revision ? std::to_string(event.revision.get()) : std::string();
    out += server_sent(to_string(event.type), id, write(event));
    live_pending_ -= next.is_live ? 1 : 0;
    pending_.pop_front();
  }
  if (pending_.empty() && !final_event_.empty()) {
    out += std::exchange(final_event_, {});
    is_finished_ = true;
  }
  // fetch_ is cleared before the call: the call sets it again if the next part has a successor.
  if (pending_.empty() && fetch_) {
    std::exchange(fetch_, {})();
  }
  return out;
}

void EventSubscription::add_replay(const Replay& replay) {
  sys::JsonWriter json;
  json.object([&] {
    json.field("revision", replay.revision);
    json.field("compact_revision", replay.compact_revision);
  });
  // The store resolved `oldest` to a revision; later parts and cancellations refer to that.
  if (std::exchange(filter_.from_oldest, false)) {
    filter_.start = replay.start;
  }
  if (filter_.start && *filter_.start <= replay.compact_revision) {
    // The start revision is compacted: the reader must list the locks again.
    final_event_ = server_sent("compact", {}, json.take());
    on_ready_();
    return;
  }
  if (!std::exchange(has_started_, true)) {
    // The id of `ready` is the revision before the first event, so that a reader that loses the
    // connection before the first event resumes at the same place.
    const auto seen = filter_.start ? filter_.start->get() - 1 : replay.revision.get();
    initial_event_ = server_sent("ready", std::to_string(seen), json.take());
  }
  queue(replay.events, false);
  if (replay.next) {
    filter_.start = replay.next;
  } else {
    replayed_ = replay.revision;
  }
  on_ready_();
}

void EventSubscription::refuse(const Error& error) {
  sys::JsonWriter json;
  json.object([&] { json.field("detail", tenure::to_string(error)); });
  final_event_ = server_sent("error", {}, json.take());
  on_ready_();
}

void EventSubscription::deliver(const EventBatch& batch) {
  if (!resume_at_) {
    queue(batch, true);
    on_ready_();
  }
}

bool EventSubscription::wants(const core::Event& event) const {
  return event.item.name.starts_with(filter_.prefix) &&
         (!filter_.start || event.revision >= *filter_.start) &&
         filter_.may_read(event.item.name.view());
}

void EventSubscription::queue(const EventBatch& batch, bool is_live) {
  for (std::size_t i = 0; i < batch->size(); ++i) {
    const auto& event = (*batch)[i];
    // An event up to replayed_ was in flight while the replay was copied and is part of it.
    if (!wants(event) || (is_live && event.revision <= replayed_)) {
      continue;
    }
    if (is_live && live_pending_ >= buffer_max_) {
      finish("cut", slow_reader_detail, event.revision);
      return;
    }
    if (!pending_.empty() && pending_.back().event().revision == event.revision) {
      pending_.back().ends_revision = false;
    }
    pending_.push_back({.batch = batch, .index = i, .is_live = is_live});
    live_pending_ += is_live ? 1 : 0;
  }
}

void EventSubscription::finish(std::string_view type, std::string_view why, core::Revision resume) {
  if (resume_at_ || !final_event_.empty()) {
    return;
  }
  // A reader that starts in the future must not be sent back before its own start.
  resume = std::max(resume, filter_.start.value_or(resume));
  resume_at_ = resume;
  // The reader resumes at this revision, so its already queued events are dropped.
  while (!pending_.empty() && pending_.back().event().revision == resume) {
    live_pending_ -= pending_.back().is_live ? 1 : 0;
    pending_.pop_back();
  }
  sys::JsonWriter json;
  json.object([&] {
    json.field("detail", why);
    json.field("resume_revision", resume);
  });
  final_event_ = server_sent(type, {}, json.take());
}

EventFeed::EventFeed(Store& store, Metrics& metrics, boost::asio::any_io_executor executor,
                     const Options& options)
    : store_(store),
      metrics_(metrics),
      executor_(std::move(executor)),
      options_(options),
      grace_(executor_) {}

void EventFeed::applied(const core::Applied& what, const core::State& /*state*/) {
  // Also without readers: restored() needs the last revision that readers may have received.
  known_ = what.revision;
  if (readers_.load(std::memory_order_relaxed) > 0) {
    gathered_.insert(gathered_.end(), what.events.begin(), what.events.end());
  }
}

void EventFeed::restored(const core::State& /*state*/) {
  boost::asio::post(executor_, [this, resume = core::Revision{known_.get() + 1}] {
    cancel_all(resume, "the leader sent a snapshot instead of the events");
  });
}

void EventFeed::role_changed(const LogPosition& log) {
  const bool is_there = log.is_leader || log.leader != 0;
  boost::asio::post(executor_, [this, is_there] { set_leader(is_there); });
}

void EventFeed::settled() {
  if (gathered_.empty()) {
    return;
  }
  const auto count = gathered_.size();
  const auto first = gathered_.front().revision;
  if (in_flight_ + count > options_.in_flight_max) {
    // The HTTP thread is too slow: cancel readers instead of using unbounded memory. The dropped
    // events remain in the history of the store, from which the readers resume.
    gathered_.clear();
    // One cancellation is enough: until a new reader arrives, no active reader remains.
    if (!std::exchange(has_reported_gap_, true)) {
      boost::asio::post(executor_, [this, first] { cancel_all(first, slow_reader_detail); });
    }
    return;
  }
  in_flight_ += count;
  auto batch = std::make_shared<const std::vector<core::Event>>(std::exchange(gathered_, {}));
  boost::asio::post(executor_, [this, batch = std::move(batch)] { deliver(batch); });
}

std::shared_ptr<EventSubscription> EventFeed::subscribe(const EventFilter& filter,
                                                        std::function<void()> on_ready) {
  auto subscription =
      std::make_shared<EventSubscription>(filter, options_.buffer_max, std::move(on_ready));
  subscription->reader_guard_ = count_reader();
  // The subscriber becomes active only after its replay. Before that it gets no live events, but
  // readers_ counts it already, so that events are collected from now on.
  fetch(subscription, filter);
  return subscription;
}

void EventFeed::fetch(const SubscriberRef& reader, const EventFilter& filter) {
  store_.peek([this, filter, reader](const Result<View>& view) {
    if (!view) {
      boost::asio::post(executor_, [reader, error = view.error()] { refuse(reader, error); });
      return;
    }
    // Later batches are posted after this handler, so no event is lost between replay and live
    // events.
    boost::asio::post(executor_, [this, reader, filter, replay = read_replay(*view, filter)] {
      hand_over(reader, filter, replay);
    });
  });
}

void EventFeed::refuse(const SubscriberRef& reader, const Error& error) {
  if (const auto alive = reader.lock()) {
    alive->refuse(error);
  }
}

void EventFeed::hand_over(const SubscriberRef& reader, const EventFilter& filter,
                          const EventSubscription::Replay& replay) {
  const auto alive = reader.lock();
  if (!alive) {
    return;
  }
  if (replay.next) {
    alive->fetch_ = [this, reader,
                     rest = EventFilter{.prefix = filter.prefix, .start = replay.next}] {
      fetch(reader, rest);
    };
  } else {
    std::erase_if(active_, [](const SubscriberRef& other) { return other.expired(); });
    active_.push_back(reader);
    wait_for_leader();
  }
  alive->add_replay(replay);
}

EventSubscription::Replay EventFeed::read_replay(const View& view, const EventFilter& filter) {
  known_ = view.state.revision;
  const auto& ring = view.state.events;
  EventSubscription::Replay replay{.revision = view.state.revision,
                                   .compact_revision = ring.compact_revision(),
                                   .start = filter.start};
  if (filter.from_oldest) {
    replay.start = core::Revision{ring.compact_revision().get() + 1};
  }
  std::vector<core::Event> events;
  if (replay.start && *replay.start > ring.compact_revision()) {
    // The ring is sorted by revision, so the start is found in logarithmic time.
    const auto all = ring.all().in_order();
    auto it = std::ranges::lower_bound(all, *replay.start, {}, &core::Event::revision);
    core::Revision last{};
    for (std::size_t seen = 0; it != all.end(); ++it, ++seen) {
      const core::Event& event = *it;
      // Stops between revisions only: the next part starts with a whole revision. Visited events
      // count, not matching ones, because the visit is what costs time.
      if (seen >= options_.replay_max && event.revision != last) {
        replay.next = event.revision;
        break;
      }
      last = event.revision;
      if (event.item.name.starts_with(filter.prefix)) {
        events.push_back(event);
      }
    }
  }
  replay.events = std::make_shared<const std::vector<core::Event>>(std::move(events));
  has_reported_gap_ = false;
  return replay;
}

std::shared_ptr<void> EventFeed::count_reader() {
  ++readers_;
  metrics_.watch_began();
  return {nullptr, [this](void*) {
            --readers_;
            metrics_.watch_ended();
          }};
}

void EventFeed::deliver(const EventBatch& batch) {
  in_flight_ -= batch->size();
  each_active([&](EventSubscription& reader) {
    reader.deliver(batch);
    if (reader.resume_at_) {
      metrics_.watch_cut();
    }
  });
}

void EventFeed::cancel_all(core::Revision resume, std::string_view why) {
  each_active([&](EventSubscription& reader) {
    reader.finish("cut", why, resume);
    reader.on_ready_();
    metrics_.watch_cut();
  });
}

void EventFeed::set_leader(bool is_there) {
  has_leader_ = is_there;
  if (!is_there) {
    wait_for_leader();
  } else if (std::exchange(is_waiting_, false)) {
    grace_->cancel();
  }
}

void EventFeed::wait_for_leader() {
  if (has_leader_ || active_.empty() || std::exchange(is_waiting_, true)) {
    return;
  }
  grace_->expires_after(options_.leader_grace);
  grace_->async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled && std::exchange(is_waiting_, false)) {
      end_streams_without_leader();
    }
  });
}

void EventFeed::end_streams_without_leader() {
  store_.peek([this](const Result<View>& view) {
    if (!view || view->log.is_leader || view->log.leader != 0) {
      return;  // The store stops, or a leader is known again.
    }
    // Posted after all previously settled events.
    boost::asio::post(executor_, [this, resume = core::Revision{view->state.revision.get() + 1}] {
      each_active([&](EventSubscription& reader) {
        reader.finish("no_leader",
                      "this member knows no leader, or was removed from the cluster; resume at "
                      "another member",
                      resume);
        reader.on_ready_();
      });
    });
  });
}

void EventFeed::each_active(const std::function<void(EventSubscription&)>& visit) {
  std::vector<std::shared_ptr<EventSubscription>> alive;
  for (const auto& reader : active_) {
    if (auto locked = reader.lock(); locked && !locked->resume_at_ && !locked->is_finished_) {
      alive.push_back(std::move(locked));
    }
  }
  active_.assign(alive.begin(), alive.end());
  for (const auto& reader : alive) {
    visit(*reader);
  }
}

}  // namespace tenure::server::http
