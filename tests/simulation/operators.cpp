#include "simulation/operators.hpp"

#include <algorithm>
#include <memory>

namespace tenure::simulation {

using namespace std::chrono_literals;

namespace {

constexpr VirtualTime poll_interval = 20ms;
constexpr VirtualTime test_timeout = 60s;

}  // namespace

server::AddMember Operators::addition(const Host& host) {
  const auto address = "10.0.0." + std::to_string(host.id().get());
  return {.id = host.id().get(), .peer_address = address + ":1", .client_address = address + ":2"};
}

void Operators::disturb() {
  auto& random = world_.random();
  const auto& options = world_.options();
  const auto& subject = *directory_.hosts[random.index(directory_.hosts.size())];
  for (auto* host : directory_.hosts) {
    if (!host->leads()) {
      continue;
    }
    if (options.has_transfers && random.one_in(2)) {
      host->transfer_leadership();
    } else if (options.has_changes) {
      if (random.one_in(2)) {
        host->change_members(addition(subject));
      } else {
        host->change_members(server::RemoveMember{.id = subject.id().get()});
      }
    }
  }
}

void Operators::check_liveness() {
  const auto first = voters();
  const auto& hosts = directory_.hosts;
  // A host that can be added. If all are members, one is removed first.
  auto* candidate = hosts.back();
  for (auto* host : hosts) {
    candidate = is_voter(*host) ? candidate : host;
  }
  if (is_voter(*candidate) && !remove(*candidate)) {
    return;
  }
  if (!add(*candidate) || !transfer_to(*candidate)) {
    return;
  }
  for (auto* host : first) {
    if (host == candidate) {
      continue;
    }
    if (!transfer_to(*host) || !(is_member(*candidate) ? remove(*candidate) : add(*candidate))) {
      return;
    }
  }
  check_replacement(*candidate);
}

// Removes any member first, then the newest one, by a leader that may not know of its promotion.
void Operators::check_replacement(Host& candidate) {
  if (is_voter(candidate) && !remove(candidate)) {
    return;
  }
  const auto before = voters();
  auto& dead = *before[world_.random().index(before.size())];
  if (!replace(dead, candidate)) {
    return;
  }
  const auto now = voters();
  auto& next = *now[world_.random().index(now.size())];
  if (transfer_to(next)) {
    static_cast<void>(replace(candidate, dead));
  }
}

bool Operators::retry_until(const std::string& what, const std::function<void(Done)>& ask,
                            const std::function<bool()>& is_done) {
  struct Attempt {
    bool is_under_way = false;
    std::string answer = "nothing";
  };
  const auto attempt = std::make_shared<Attempt>();
  for (const auto until = world_.now() + test_timeout;
       world_.now() < until && !world_.has_failed();) {
    if (is_done()) {
      return true;
    }
    if (leader() != nullptr && !attempt->is_under_way) {
      attempt->is_under_way = true;
      ask([attempt](const Result<void>& result) {
        attempt->is_under_way = false;
        attempt->answer = result ? "done" : to_string(result.error());
      });
    }
    world_.run_until(world_.now() + poll_interval);
  }
  world_.fail("operators cannot " + what + ", a minute after the last fault; the last answer was " +
              attempt->answer + (attempt->is_under_way ? ", and one never came" : ""));
  return false;
}

bool Operators::add(Host& host) {
  return retry_until(
      "add member " + std::to_string(host.id().get()),
      [&](Done done) { leader()->change_members(addition(host), std::move(done)); },
      [&] { return is_voter(host); });
}

bool Operators::remove(Host& host) {
  return retry_until(
      "remove member " + std::to_string(host.id().get()),
      [&](Done done) {
        leader()->change_members(server::RemoveMember{.id = host.id().get()}, std::move(done));
      },
      [&] { return leader() != nullptr && !is_member(host); });
}

bool Operators::replace(Host& dead, Host& by) {
  const bool may_go_first = voters().size() > 3;
  dead.crash();
  const bool is_replaced =
      may_go_first && world_.random().one_in(2) ? remove(dead) && add(by) : add(by) && remove(dead);
  dead.boot();
  return is_replaced;
}

bool Operators::transfer_to(Host& host) {
  return retry_until(
      "make member " + std::to_string(host.id().get()) + " lead",
      [&](Done done) { leader()->transfer_leadership(host.id(), std::move(done)); },
      [&] { return host.leads(); });
}

Host* Operators::leader() const {
  // Two leaders can exist for a moment after the heal; the one with the newer term counts.
  Host* newest = nullptr;
  for (auto* host : directory_.hosts) {
    if (host->leads() &&
        (newest == nullptr || newest->store().replica().term() < host->store().replica().term())) {
      newest = host;
    }
  }
  return newest;
}

bool Operators::is_member(const Host& host) const {
  const auto* leads = leader();
  const auto has_id = [&](const auto& member) { return member.id == host.id().get(); };
  return leads != nullptr && std::ranges::any_of(leads->store().members(), has_id);
}

bool Operators::is_voter(const Host& host) const {
  return std::ranges::any_of(voters(), [&](const Host* voter) { return voter == &host; });
}

std::vector<Host*> Operators::voters() const {
  std::vector<Host*> found;
  if (const auto* leads = leader()) {
    for (const auto& member : leads->store().members()) {
      if (member.is_voter && member.id <= directory_.hosts.size()) {
        found.push_back(directory_.hosts[member.id - 1]);
      }
    }
  }
  return found;
}

}  // namespace tenure::simulation
