#include "fault/watcher.hpp"

#include <chrono>
#include <thread>

namespace tenure::fault {

using history::Kind;

void Watcher::run() {
  while (!shop_.stop.stop_requested()) {
    auto watch = shop_.client.watch("chaos/", {.scope = WatchScope::prefix, .events_max = 100'000});
    if (!watch) {
      // It asked for as long as a request may take: there is nothing to hurry.
      std::this_thread::yield();
      continue;
    }
    id_ = shop_.name + ".watcher" + std::to_string(++watches_);
    history::Event begun{.kind = Kind::watching, .at = now(), .watcher = id_};
    for (auto& name : all_names()) {
      begun.items.push_back({.name = std::move(name), .permits = {}, .range = {}});
    }
    shop_.recorder.write(begun);
    follow(*watch);
  }
}

void Watcher::follow(Watch& watch) {
  while (true) {
    const auto event = watch.next(shop_.stop);
    if (event) {
      tell(*event);
      continue;
    }
    if (!shop_.stop.stop_requested()) {
      shop_.recorder.write(
          {.kind = Kind::died, .at = now(), .client = id_, .why = to_string(event.error())});
    }
    return;
  }
}

void Watcher::tell(const LockEvent& event) {
  if (event.type == LockEventType::queued && !event.metadata.empty()) {
    shop_.recorder.write({.kind = Kind::queued, .at = now(), .request = event.metadata});
  }
  if (event.type == LockEventType::expired || event.type == LockEventType::revoked) {
    shop_.recorder.note_ended(event);
  }
  if (event.type == LockEventType::granted) {
    shop_.recorder.write({.kind = Kind::watch,
                          .at = now(),
                          .request = event.metadata,
                          .items = {{.name = event.name, .permits = {}, .range = {}}},
                          .token = event.token.get(),
                          .watcher = id_});
  }
}

}  // namespace tenure::fault
