#include "simulation/network.hpp"

#include <algorithm>

namespace tenure::simulation {

Network::Network(World& world, std::size_t endpoints)
    : world_(world),
      endpoints_(endpoints),
      delay_(world.options().network_delay),
      last_(endpoints * endpoints) {}

bool Network::loses(Endpoint from, Endpoint to) {
  const bool is_lost =
      cuts_.contains({from, to}) ||
      (!world_.is_healed() && world_.random().permille(world_.options().drop_permille));
  lost_ += is_lost ? 1 : 0;
  return is_lost;
}

VirtualTime Network::delay() {
  // Usually short, sometimes at the upper bound.
  auto& random = world_.random();
  return random.between(delay_ / 8, random.one_in(10) ? delay_ * 2 : delay_);
}

void Network::send(Endpoint from, Endpoint to, World::Task deliver) {
  auto& random = world_.random();
  if (loses(from, to)) {
    return;
  }
  const bool is_wild = world_.options().is_reordering && !world_.is_healed();
  const bool is_doubled =
      !world_.is_healed() && random.permille(world_.options().duplicate_permille);
  for (int copies = is_doubled ? 2 : 1; copies > 0; --copies) {
    auto when = world_.now() + delay();
    if (is_wild) {
      when += random.one_in(30) ? VirtualTime(random.below(1'500'000)) : VirtualTime(0);
    } else {
      when = last(from, to) = std::max(last(from, to), when);
    }
    arrive(from, to, when, deliver);
  }
}

void Network::stream(Endpoint from, Endpoint to, World::Task deliver) {
  if (loses(from, to)) {
    return;
  }
  const auto when = last(from, to) = std::max(last(from, to), world_.now() + delay());
  arrive(from, to, when, std::move(deliver));
}

void Network::arrive(Endpoint from, Endpoint to, VirtualTime when, World::Task deliver) {
  world_.at(when, [this, from, to, deliver = std::move(deliver)] {
    if (cuts_.contains({from, to})) {
      ++lost_;
      return;
    }
    deliver();
  });
}

void Network::isolate(Endpoint endpoint) {
  for (Endpoint other = 0; other < endpoints_; ++other) {
    if (other != endpoint) {
      cut(endpoint, other);
      cut(other, endpoint);
    }
  }
}

}  // namespace tenure::simulation
