#include "simulation/faults.hpp"

#include <algorithm>
#include <utility>

namespace tenure::simulation {

using namespace std::chrono_literals;

Faults::Faults(World& world, Network& network, Operators& operators, std::vector<Host*> hosts,
               std::vector<Client*> clients)
    : world_(world),
      network_(network),
      operators_(operators),
      hosts_(std::move(hosts)),
      clients_(std::move(clients)) {}

void Faults::next() {
  const VirtualTime every = world_.options().fault_every;
  world_.after(world_.random().between(every / 4, every * 2), [this] {
    if (world_.is_healed()) {
      return;
    }
    ++total_;
    break_something();
    next();
  });
}

void Faults::break_something() {
  auto& random = world_.random();
  switch (random.below(8)) {
    case 0:
    case 1: break_network(); return;
    case 2:
    case 3:
    case 4: break_host(*hosts_[victim()]); return;
    case 5: break_client(*clients_[random.index(clients_.size())]); return;
    case 6: operators_.disturb(); return;
    default: depose_leader(); return;
  }
}

// Prefers the leader: its failures have the largest effect.
std::size_t Faults::victim() {
  auto& random = world_.random();
  const auto any = random.index(hosts_.size());
  if (random.one_in(2)) {
    const auto leader = std::ranges::find_if(hosts_, &Host::believes_to_lead);
    return leader == hosts_.end() ? any : static_cast<std::size_t>(leader - hosts_.begin());
  }
  return any;
}

// Isolated from the other members only: clients still reach a deposed leader.
void Faults::cut_from_members(std::size_t alone) {
  for (std::size_t other = 0; other < hosts_.size(); ++other) {
    if (other != alone) {
      network_.cut(alone, other);
      network_.cut(other, alone);
    }
  }
}

// Transfers the leadership and isolates the old leader before it can learn of it: it remains leader
// beside the new one for up to an election timeout.
void Faults::depose_leader() {
  if (!world_.options().has_partitions || !world_.options().has_transfers) {
    operators_.disturb();
    return;
  }
  const auto old = victim();
  hosts_[old]->transfer_leadership();
  world_.after(world_.random().between(VirtualTime(1), 3 * world_.options().network_delay),
               [this, old] {
                 if (!world_.is_healed()) {
                   cut_from_members(old);
                 }
               });
}

void Faults::break_network() {
  auto& random = world_.random();
  if (!world_.options().has_partitions) {
    network_.set_delay(random.between(VirtualTime(200), world_.options().network_delay * 4));
    return;
  }
  switch (random.below(6)) {
    case 0: cut_from_members(victim()); return;
    case 1: network_.isolate(random.index(network_.endpoints())); return;
    case 2:
      // In one direction only.
      network_.cut(random.index(network_.endpoints()), random.index(hosts_.size()));
      return;
    case 3: network_.set_delay(random.between(VirtualTime(200), VirtualTime(100ms))); return;
    default:
      network_.heal_all();
      network_.set_delay(world_.options().network_delay);
      return;
  }
}

void Faults::crash(Host& host) {
  ++crashes_;
  host.crash();
}

void Faults::break_host(Host& host) {
  auto& random = world_.random();
  const auto& options = world_.options();
  if (!host.is_up()) {
    host.boot();
    return;
  }
  switch (random.below(6)) {
    case 0:
    case 1:
      if (options.has_crashes) {
        crash(host);
        // Usually a short outage.
        if (!random.one_in(4)) {
          world_.after(random.between(VirtualTime(1ms), VirtualTime(2s)), [&host] {
            if (!host.is_up()) {
              host.boot();
            }
          });
        }
      }
      return;
    case 2:
      if (options.has_pauses) {
        host.pause(random.between(VirtualTime(10ms),
                                  random.one_in(3) ? VirtualTime(5s) : VirtualTime(500ms)));
      }
      return;
    case 3:
      host.disk().set_delay(random.one_in(2)
                                ? options.disk_delay
                                : random.between(VirtualTime(100), VirtualTime(200ms)));
      return;
    case 4:
      if (options.has_clock_jumps) {
        host.jump(random.between<std::chrono::nanoseconds>(1ms, 5s));
      }
      return;
    default:
      if (options.has_full_disks) {
        host.fill_disk(random.one_in(2));
      }
      return;
  }
}

void Faults::break_client(Client& client) {
  auto& random = world_.random();
  if (random.one_in(3)) {
    client.die();
  } else if (world_.options().has_pauses) {
    client.pause(random.between(VirtualTime(10ms), VirtualTime(world_.options().ttl_max) * 2));
  }
}

void Faults::end() {
  world_.heal();
  network_.heal_all();
  network_.set_delay(world_.options().network_delay);
  for (auto* host : hosts_) {
    host->disk().set_delay(world_.options().disk_delay);
    host->fill_disk(false);
    if (!host->is_up()) {
      host->boot();
    }
  }
}

}  // namespace tenure::simulation
