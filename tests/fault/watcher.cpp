#include "fault/watcher.hpp"

#include <chrono>
#include <thread>

namespace tenure::fault {

using history::Kind;

void Watcher::run() {
  while (!context_.stop.stop_requested()) {
    auto watch =
        context_.client.watch("chaos/", {.scope = WatchScope::prefix, .events_max = 100'000});
    if (!watch) {
      // watch() blocked for the request timeout, so no further backoff is needed.
      std::this_thread::yield();
      continue;
    }
    id_ = context_.name + ".watcher" + std::to_string(++watches_);
    history::Event begun{.kind = Kind::watching, .at = now(), .watcher = id_};
    for (auto& name : all_names()) {
      begun.items.push_back({.name = std::move(name), .permits = {}, .range = {}});
    }
    context_.recorder.write(begun);
    follow(*watch);
  }
}

void Watcher::follow(Watch& watch) {
  while (true) {
    const auto event = watch.next(context_.stop);
    if (event) {
      record(*event);
      continue;
    }
    if (!context_.stop.stop_requested()) {
      context_.recorder.write(
          {.kind = Kind::died, .at = now(), .client = id_, .why = to_string(event.error())});
    }
    return;
  }
}

void Watcher::record(const LockEvent& event) {
  if (event.type == LockEventType::queued && !event.metadata.empty()) {
    context_.recorder.write({.kind = Kind::queued, .at = now(), .request = event.metadata});
  }
  if (event.type == LockEventType::expired || event.type == LockEventType::revoked) {
    context_.recorder.note_ended(event);
  }
  if (event.type == LockEventType::granted) {
    context_.recorder.write({.kind = Kind::watch,
                             .at = now(),
                             .request = event.metadata,
                             .items = {{.name = event.name, .permits = {}, .range = {}}},
                             .token = event.token.get(),
                             .watcher = id_});
  }
}

}  // namespace tenure::fault
