#include "server/requests/callers.hpp"

#include <algorithm>

#include "server/requests/errors.hpp"

namespace tenure::server {

Callers::Ticket Callers::attach(RequestKey key, Told told) {
  const Ticket ticket{++last_ticket_};
  waits_[key].push_back({.ticket = ticket, .told = std::move(told)});
  return ticket;
}

Callers::Left Callers::detach(RequestKey key, Ticket ticket) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return Left::nobody;
  }
  std::erase_if(it->second, [&](const Caller& caller) { return caller.ticket == ticket; });
  if (!it->second.empty()) {
    return Left::others;
  }
  waits_.erase(it);
  return Left::nobody;
}

std::size_t Callers::attached() const {
  std::size_t count = 0;
  for (const auto& [key, callers] : waits_) {
    count += callers.size();
  }
  return count;
}

void Callers::dismiss(const Error& why) {
  auto waits = std::exchange(waits_, {});
  for (auto& [key, callers] : waits) {
    for (auto& caller : callers) {
      caller.told(std::unexpected(why), {});
    }
  }
}

void Callers::role_changed(const LogPosition& log) {
  if (!log.is_leader) {
    dismiss(leadership_lost());
  }
}

Callers::Ticket Callers::follow(core::LeaseId lease, Lost lost) {
  const Ticket ticket{++last_ticket_};
  leases_[lease.get()].push_back({.ticket = ticket, .lost = std::move(lost)});
  return ticket;
}

void Callers::unfollow(core::LeaseId lease, Ticket ticket) {
  const auto it = leases_.find(lease.get());
  if (it == leases_.end()) {
    return;
  }
  std::erase_if(it->second, [&](const Follower& follower) { return follower.ticket == ticket; });
  if (it->second.empty()) {
    leases_.erase(it);
  }
}

void Callers::tell_followers(const core::Loss& loss) {
  const auto it = leases_.find(loss.lease.get());
  if (it == leases_.end()) {
    return;
  }
  // A copy: who hears of it may unfollow.
  const auto followers = it->second;
  for (const auto& follower : followers) {
    follower.lost(loss);
  }
}

void Callers::applied(const core::Applied& what, const core::State& /*state*/) {
  for (const auto& loss : what.losses) {
    tell_followers(loss);
  }
  for (const auto& notice : what.notices) {
    auto node = waits_.extract({.lease = notice.lease, .request = notice.request});
    if (node.empty()) {
      continue;
    }
    for (auto& caller : node.mapped()) {
      caller.told(notice, what.revision);
    }
  }
}

}  // namespace tenure::server
