#include "server/requests/waiter_registry.hpp"

#include <algorithm>

#include "server/requests/errors.hpp"

namespace tenure::server {

WaiterRegistry::Ticket WaiterRegistry::attach(RequestKey key, OnNotice notify) {
  const Ticket ticket{++last_ticket_};
  waits_[key].push_back({.ticket = ticket, .notify = std::move(notify)});
  return ticket;
}

WaiterRegistry::Remaining WaiterRegistry::detach(RequestKey key, Ticket ticket) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return Remaining::none;
  }
  std::erase_if(it->second, [&](const Waiter& waiter) { return waiter.ticket == ticket; });
  if (!it->second.empty()) {
    return Remaining::some;
  }
  waits_.erase(it);
  return Remaining::none;
}

std::size_t WaiterRegistry::attached() const {
  std::size_t count = 0;
  for (const auto& [key, waiters] : waits_) {
    count += waiters.size();
  }
  return count;
}

void WaiterRegistry::fail_all(const Error& why) {
  // Taken out first: a callback may attach or detach, which would invalidate the iteration.
  auto waits = std::exchange(waits_, {});
  for (auto& [key, waiters] : waits) {
    for (auto& waiter : waiters) {
      waiter.notify(std::unexpected(why), {});
    }
  }
}

void WaiterRegistry::role_changed(const LogPosition& log) {
  if (!log.is_leader) {
    fail_all(leadership_lost());
  }
}

WaiterRegistry::Ticket WaiterRegistry::subscribe(core::LeaseId lease, Lost lost) {
  const Ticket ticket{++last_ticket_};
  leases_[lease.get()].push_back({.ticket = ticket, .lost = std::move(lost)});
  return ticket;
}

void WaiterRegistry::unsubscribe(core::LeaseId lease, Ticket ticket) {
  const auto it = leases_.find(lease.get());
  if (it == leases_.end()) {
    return;
  }
  std::erase_if(it->second,
                [&](const Subscriber& subscriber) { return subscriber.ticket == ticket; });
  if (it->second.empty()) {
    leases_.erase(it);
  }
}

void WaiterRegistry::notify_subscribers(const core::Loss& loss) {
  const auto it = leases_.find(loss.lease.get());
  if (it == leases_.end()) {
    return;
  }
  // Iterates over a copy: a callback may unsubscribe.
  const auto subscribers = it->second;
  for (const auto& subscriber : subscribers) {
    subscriber.lost(loss);
  }
}

void WaiterRegistry::applied(const core::Applied& what, const core::State& /*state*/) {
  for (const auto& loss : what.losses) {
    notify_subscribers(loss);
  }
  for (const auto& notice : what.notices) {
    // Extracted before the calls, for the same reason as in fail_all(). Without a node no call of
    // this member waits for the request.
    auto node = waits_.extract({.lease = notice.lease, .request = notice.request});
    if (node.empty()) {
      continue;
    }
    for (auto& waiter : node.mapped()) {
      waiter.notify(notice, what.revision);
    }
  }
}

}  // namespace tenure::server
