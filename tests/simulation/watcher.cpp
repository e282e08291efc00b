#include "simulation/watcher.hpp"

#include "simulation/client.hpp"
#include "simulation/host.hpp"

namespace tenure::simulation {

using namespace std::chrono_literals;

Watcher::Watcher(World& world, Network& network, Directory& directory, Endpoint endpoint)
    : world_(world),
      network_(network),
      directory_(directory),
      endpoint_(endpoint),
      name_("watcher " + std::to_string(endpoint)) {}

void Watcher::connect() {
  ++stream_;
  next_sequence_ = 0;
  is_open_ = false;
  heard_ = world_.now();
  server_ = (server_ + 1) % directory_.hosts.size();
  const Request ask{
      .client = endpoint_,
      .number = stream_,
      .what = WatchRequest{has_begun_ ? core::Revision{last_.get() + 1} : core::Revision{}}};
  network_.send(endpoint_, server_,
                [this, ask, to = server_] { directory_.hosts[to]->handle_request(ask); });
  poll_later();
}

void Watcher::poll_later() {
  world_.after(1s, [this, stream = stream_] {
    if (stream != stream_) {
      return;
    }
    if (world_.now() - heard_ >= (is_open_ ? VirtualTime(3s) : VirtualTime(1s))) {
      connect();
      return;
    }
    poll_later();
  });
}

void Watcher::handle_reply(const Reply& answer) {
  if (answer.number != stream_) {
    return;
  }
  heard_ = world_.now();
  if (const auto* began = std::get_if<WatchStarted>(&answer.what)) {
    this->began(*began);
  } else if (const auto* events = std::get_if<WatchEvents>(&answer.what)) {
    take(*events);
  } else if (std::holds_alternative<Error>(answer.what)) {
    connect();
  } else if (std::holds_alternative<WatchLost>(answer.what)) {
    world_.fail(name_ + ": its resume revision is compacted");
  }
}

void Watcher::began(const WatchStarted& began) {
  is_open_ = true;
  if (has_begun_) {
    return;
  }
  has_begun_ = true;
  last_ = began.revision;
  history::Event event{.kind = history::Kind::watching, .watcher = name_};
  const auto& options = world_.options();
  for (std::size_t i = 0; i < options.names; ++i) {
    for (const auto* kind : {"rw", "semaphore", "space", "mutex"}) {
      event.items.push_back({.name = kind + std::to_string(i)});
    }
  }
  if (options.names == 0) {
    return;
  }
  event.items.push_back({.name = "leader"});
  world_.record(std::move(event));
}

void Watcher::take(const WatchEvents& events) {
  if (!is_open_ || events.sequence != next_sequence_) {
    connect();
    return;
  }
  ++next_sequence_;
  for (const auto& event : events.events) {
    last_ = event->revision;
    if (event->type != core::EventType::granted || event->item.name.starts_with("rare")) {
      continue;
    }
    ++seen_;
    world_.record(
        {.kind = history::Kind::watch,
         .request = std::to_string(event->lease.get()) + "/" + std::to_string(event->request.get()),
         .items = {to_history(event->item)},
         .token = event->token.get(),
         .watcher = name_});
  }
}

}  // namespace tenure::simulation
