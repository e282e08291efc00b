#include "backends/memory/store.hpp"

#include <algorithm>
#include <cstdint>
#include <system_error>
#include <utility>
#include <variant>

#include "backends/memory/core_types.hpp"
#include "sys/fork.hpp"

namespace tenure::backends {
namespace {

/// Limits of the state machine for a store without a network.
core::Limits limits() {
  core::Limits chosen;
  // A function call is never retried, and late watchers are few.
  chosen.answers_per_lease_max = 16;
  // The memory of this process is the limit.
  chosen.items_per_lease_max = 1'000'000'000;
  chosen.state_bytes_max = std::size_t{1} << 40;
  return chosen;
}

/// Whether a watch reports events of this name.
bool matches(const WatchRequest& watch, std::string_view name) {
  return watch.scope == WatchScope::prefix ? name.starts_with(watch.name) : name == watch.name;
}

/// Named stores, while a backend uses them. A child of fork() has stores of its own: the threads of
/// the parent's stores do not exist there, and their locks belong to the parent.
struct Registry {
  using Key = std::pair<std::uint32_t, std::string>;  ///< Generation of the process, and name.
  /// Guards the map. Not held while a store is destroyed, because the map holds no strong
  /// reference.
  sys::Mutex mutex;
  std::map<Key, std::weak_ptr<MemoryStore>> stores TENURE_GUARDED_BY(mutex);
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

MemoryStore::MemoryStore(sys::Clock& clock)
    : clock_(clock),
      began_(clock.now()),
      machine_(limits(), core::newest_version),
      alarm_(clock.make_alarm()) {}

// No backend uses the store any more, so only the expiry thread is left. The join is at the end,
// without the mutex, which the thread needs to finish.
MemoryStore::~MemoryStore() {
  std::jthread expiry;
  {
    const sys::MutexGuard lock(mutex_);
    expiry = std::move(expiry_thread_);
  }
  expiry.request_stop();
  alarm_->notify();
}

std::shared_ptr<MemoryStore> MemoryStore::named(const std::string& name) {
  if (name.empty()) {
    return std::make_shared<MemoryStore>();
  }
  auto& all = registry();
  const sys::MutexGuard lock(all.mutex);
  // Removes the entries of stores that have ended; each lookup does, so the map cannot grow.
  std::erase_if(all.stores, [](const auto& entry) { return entry.second.expired(); });
  auto& known = all.stores[{sys::ForkEpoch::now(), name}];
  auto store = known.lock();
  if (store == nullptr) {
    store = std::make_shared<MemoryStore>();
    known = store;
  }
  return store;
}

MemoryStore::MemberId MemoryStore::join(Listener& listener) {
  const sys::MutexGuard lock(mutex_);
  const MemberId member{++last_member_};
  members_.emplace(member, &listener);
  return member;
}

void MemoryStore::leave(MemberId member) {
  {
    const sys::MutexGuard lock(mutex_);
    // First, so that the steps below report no loss to the listener of this member.
    members_.erase(member);
    std::erase_if(watchers_, [&](const auto& entry) { return entry.second.member == member; });
    std::vector<LeaseId> leases;
    for (const auto& [lease, granted_by] : leases_) {
      if (granted_by == member) {
        leases.push_back(lease);
      }
    }
    // The hash map has no stable order; the state machine shall process the leases in the order of
    // their ids.
    std::ranges::sort(leases);
    for (const auto lease : leases) {
      revoke(lease);
    }
  }
  drain_notifications();
  // Another thread may still deliver notifications of this member.
  const sys::MutexGuard lock(mutex_);
  const auto is_for_member = [&](const Notification& queued) { return queued.member == member; };
  while (notified_member_ == member || std::ranges::any_of(notifications_, is_for_member)) {
    delivered_.wait(mutex_);
  }
}

void MemoryStore::grant_lease(MemberId member, const LeaseRequest& request,
                              Backend::Done<void> done) {
  Result<void> answer;
  {
    const sys::MutexGuard lock(mutex_);
    // With the first lease, so that a store that only answers queries has no thread.
    start_expiry_thread();
    const auto applied = apply(core::GrantLease{
        .id = request.id, .ttl = request.ttl, .client = {}, .address = "this process"});
    if (const auto* refused = std::get_if<core::Refused>(&applied.outcome)) {
      answer = std::unexpected(from_core(*refused));
    } else {
      leases_.emplace(request.id, member);
    }
  }
  // Before `done`: what the command has caused is delivered before its caller continues.
  drain_notifications();
  done(std::move(answer));
}

void MemoryStore::renew_leases(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done) {
  Renewed renewed;
  {
    const sys::MutexGuard lock(mutex_);
    const auto applied = apply(core::RenewLeases{.leases = leases});
    if (const auto* answers = std::get_if<core::Renewed>(&applied.outcome)) {
      for (const auto& answer : answers->answers) {
        renewed.push_back(answer.ttl.has_value());
      }
    }
  }
  drain_notifications();
  done(std::move(renewed));
}

void MemoryStore::set_ttl(const TtlRequest& request, Backend::Done<void> done) {
  Result<void> answer;
  {
    const sys::MutexGuard lock(mutex_);
    const auto applied =
        apply(core::SetTtl{.lease = request.lease, .request = request.request, .ttl = request.ttl});
    if (const auto* refused = std::get_if<core::Refused>(&applied.outcome)) {
      answer = std::unexpected(from_core(*refused));
    } else if (!std::get<core::Renewed>(applied.outcome).answers.front().ttl) {
      // One lease was asked for, so there is one answer; without a TTL the lease has ended.
      answer = std::unexpected(lease_is_lost(request.lease));
    } else if (request.tracking == LeaseTracking::ended) {
      leases_.erase(request.lease);
    }
  }
  drain_notifications();
  done(std::move(answer));
}

void MemoryStore::revoke_lease(LeaseId lease, Backend::Done<void> done) {
  bool was_there = false;
  {
    const sys::MutexGuard lock(mutex_);
    // An expired or revoked lease is unknown; the caller receives lease_lost for it.
    was_there = leases_.contains(lease);
    revoke(lease);
  }
  drain_notifications();
  done(was_there ? Result<void>() : std::unexpected(lease_is_lost(lease)));
}

void MemoryStore::acquire(const AcquireRequest& request, Backend::Done<Granted> done) {
  std::optional<Result<Granted>> answer;
  {
    const sys::MutexGuard lock(mutex_);
    answer = grant_or_enqueue(request, done);
  }
  drain_notifications();
  if (answer) {
    done(*std::move(answer));
  }
}

std::optional<Result<Granted>> MemoryStore::grant_or_enqueue(const AcquireRequest& request,
                                                             Backend::Done<Granted>& done) {
  // A grant or a rejection at once is the result of this call; no waiter is registered for it.
  const auto applied = apply(to_core(request));
  if (const auto* granted = std::get_if<core::Granted>(&applied.outcome)) {
    return Granted{.token = granted->token, .count = granted->count};
  }
  if (const auto* refused = std::get_if<core::Refused>(&applied.outcome)) {
    return std::unexpected(from_core(*refused));
  }
  // Queued. The waiter is registered under the same mutex, so its notice cannot come before.
  const auto granted_by = leases_.find(request.lease);
  if (std::holds_alternative<core::LeaseLost>(applied.outcome) || granted_by == leases_.end()) {
    return std::unexpected(lease_is_lost(request.lease));
  }
  waiters_.emplace(RequestKey{.lease = request.lease, .request = request.request},
                   Waiter{.done = std::move(done),
                          .position = std::get<core::Queued>(applied.outcome).position,
                          .member = granted_by->second});
  return std::nullopt;
}

void MemoryStore::abandon(LeaseId lease, RequestId request) {
  const RequestKey key{.lease = lease, .request = request};
  std::optional<Waiter> cancelled;
  {
    const sys::MutexGuard lock(mutex_);
    if (!waiters_.contains(key)) {
      return;  // answered already
    }
    const auto applied = apply(core::Abandon{.lease = lease, .request = request});
    // If the lease has just expired, the waiter was notified in that step. The state machine
    // answers an abandoned request with a rejection; the grant or the loss that came first was
    // delivered as a notice.
    if (std::holds_alternative<core::Refused>(applied.outcome)) {
      cancelled = std::move(waiters_.extract(key).mapped());
    }
  }
  drain_notifications();
  if (cancelled) {
    cancelled->done(fail(Errc::cancelled));
  }
}

void MemoryStore::release(const ReleaseRequest& request, Backend::Done<void> done) {
  Result<void> answer;
  {
    const sys::MutexGuard lock(mutex_);
    answer = apply_for(
        request.lease,
        core::Release{.lease = request.lease, .request = request.request, .what = request.token});
  }
  drain_notifications();
  done(std::move(answer));
}

void MemoryStore::downgrade(const DowngradeRequest& request, Backend::Done<void> done) {
  Result<void> answer;
  {
    const sys::MutexGuard lock(mutex_);
    answer = apply_for(request.lease, core::Downgrade{.lease = request.lease,
                                                      .request = request.request,
                                                      .token = request.token,
                                                      .mode = request.mode});
  }
  drain_notifications();
  done(std::move(answer));
}

WatchId MemoryStore::watch(MemberId member, WatchRequest request, Backend::Sink sink) {
  WatchId id;
  {
    const sys::MutexGuard lock(mutex_);
    // Replay and registration are one step under the mutex: no event is missed or reported twice.
    id = WatchId{++last_watch_};
    const Watcher watcher{.request = std::move(request),
                          .sink = std::make_shared<Backend::Sink>(std::move(sink)),
                          .member = member};
    if (replay(watcher)) {
      watchers_.emplace(id, watcher);
    }
  }
  drain_notifications();
  return id;
}

bool MemoryStore::replay(const Watcher& watcher) {
  const auto start = watcher.request.start;
  if (start == Revision{}) {
    return true;
  }
  const auto& events = machine_.state().events;
  if (start <= events.compact_revision()) {
    notify(watcher.member, [sink = watcher.sink, gone = events.compact_revision().get()] {
      (*sink)(fail(Errc::invalid_argument, "events up to revision " + std::to_string(gone) +
                                               " are compacted; list the locks and watch from "
                                               "the current revision"));
    });
    return false;
  }
  for (const auto& event : events.since(start)) {
    if (matches(watcher.request, event.item.name.view())) {
      notify(watcher.member, [sink = watcher.sink, event = from_core(event)] { (*sink)(event); });
    }
  }
  return true;
}

void MemoryStore::unwatch(WatchId watch) {
  const sys::MutexGuard lock(mutex_);
  watchers_.erase(watch);
}

std::vector<Holder> MemoryStore::holders(const std::string& name) {
  const sys::MutexGuard lock(mutex_);
  std::vector<Holder> found;
  const auto& locks = machine_.state().locks;
  if (const auto* held = locks.find(core::ResourceView{.name = name})) {
    for (const auto token : held->holds()) {
      const auto& hold = *locks.find(token);
      found.push_back(
          {.owner = hold.owner, .token = token, .lease = hold.lease, .metadata = hold.metadata});
    }
  }
  return found;
}

bool MemoryStore::force_release(const std::string& name) {
  bool was_held = false;
  {
    const sys::MutexGuard lock(mutex_);
    const auto applied = apply(core::ForceRelease{.resource = {.name = name}});
    was_held = std::holds_alternative<core::Forced>(applied.outcome);
  }
  drain_notifications();
  return was_held;
}

core::ClusterTime MemoryStore::cluster_time() const noexcept {
  return std::chrono::duration_cast<core::ClusterTime>(clock_.now() - began_);
}

core::Applied MemoryStore::apply(const core::Command& command) {
  // One reading of the clock: no lease can expire between the two steps.
  const auto now = cluster_time();
  expire_leases(now);
  return apply_at(command, now);
}

core::Applied MemoryStore::apply_at(const core::Command& command, core::ClusterTime now) {
  auto applied = machine_.apply(command, {.time = now});
  // Under the mutex, so that the notifications are queued in the order of the commands.
  notify_all_of(applied);
  const auto next = machine_.next_deadline();
  if (next && (!alarm_set_ || *next < *alarm_set_)) {
    alarm_set_ = next;
    // The thread sleeps for longer than the new deadline.
    alarm_->notify();
  }
  return applied;
}

Result<void> MemoryStore::apply_for(LeaseId lease, const core::Command& command) {
  const auto applied = apply(command);
  if (const auto* refused = std::get_if<core::Refused>(&applied.outcome)) {
    return std::unexpected(from_core(*refused));
  }
  if (std::holds_alternative<core::LeaseLost>(applied.outcome)) {
    return std::unexpected(lease_is_lost(lease));
  }
  return {};
}

void MemoryStore::expire_leases(core::ClusterTime now) {
  const auto next = machine_.next_deadline();
  if (!next || *next > now) {
    return;
  }
  // Collected before the command, which removes the leases from the state.
  const auto expired = machine_.state().leases.expired(now);
  // Pending requests of these leases are answered by the notices of this command.
  apply_at(core::Tick{}, now);
  for (const auto lease : expired) {
    // Without a member for a lease that its client no longer tracks.
    if (auto* listener = listener_of(lease)) {
      notify(leases_.at(lease), [listener, lease] { listener->lease_lost(lease); });
    }
    leases_.erase(lease);
  }
}

void MemoryStore::revoke(LeaseId lease) {
  // A lease that has expired is no longer in the map, and its loss was reported then.
  if (leases_.contains(lease)) {
    apply(core::RevokeLease{.lease = lease});
    leases_.erase(lease);
  }
}

void MemoryStore::notify_all_of(const core::Applied& applied) {
  for (const auto& event : applied.events) {
    notify_watchers(event);
  }
  for (const auto& notice : applied.notices) {
    notify_waiter(notice);
  }
  for (const auto& loss : applied.losses) {
    // The end of a lease is one notification, not one for each hold.
    if (loss.why == core::EventType::forced) {
      notify_holder(loss);
    }
  }
}

void MemoryStore::notify_watchers(const core::Event& event) {
  for (const auto& [id, watcher] : watchers_) {
    if (matches(watcher.request, event.item.name.view())) {
      notify(watcher.member, [sink = watcher.sink, event = from_core(event)] { (*sink)(event); });
    }
  }
}

void MemoryStore::notify_waiter(const core::Notice& notice) {
  const auto lease = notice.lease;
  // Extracted, not copied: the callback of a request is called exactly once.
  auto found = waiters_.extract(RequestKey{.lease = lease, .request = notice.request});
  if (found.empty()) {
    return;
  }
  auto& waiter = found.mapped();
  Result<Granted> answer;
  if (const auto* granted = std::get_if<core::Granted>(&notice.end)) {
    answer = Granted{
        .token = granted->token, .count = granted->count, .queue_position = waiter.position};
  } else if (const auto* refused = std::get_if<core::Refused>(&notice.end)) {
    answer = std::unexpected(from_core(*refused));
  } else {
    answer = std::unexpected(lease_is_lost(lease));
  }
  notify(waiter.member, [done = std::move(waiter.done), answer = std::move(answer)]() mutable {
    done(std::move(answer));
  });
}

void MemoryStore::notify_holder(const core::Loss& loss) {
  const auto lease = loss.lease;
  if (auto* listener = listener_of(lease)) {
    notify(leases_.at(lease), [listener, lease, request = loss.request] {
      listener->hold_force_released(lease, request);
    });
  }
}

Listener* MemoryStore::listener_of(LeaseId lease) {
  const auto granted_by = leases_.find(lease);
  const auto member =
      granted_by == leases_.end() ? members_.end() : members_.find(granted_by->second);
  return member == members_.end() ? nullptr : member->second;
}

void MemoryStore::notify(MemberId member, std::move_only_function<void()> deliver) {
  notifications_.push_back({.member = member, .deliver = std::move(deliver)});
}

void MemoryStore::drain_notifications() {
  mutex_.lock();
  // One deliverer at a time keeps the order. Another thread, or a callback that calls the store,
  // only queues its notifications; the loop of the deliverer takes them.
  while (!notified_member_ && !notifications_.empty()) {
    auto notification = std::move(notifications_.front());
    notifications_.pop_front();
    notified_member_ = notification.member;
    mutex_.unlock();
    notification.deliver();
    // Destroyed before leave() may return: the callback may refer to the client.
    notification.deliver = nullptr;
    mutex_.lock();
    notified_member_.reset();
    delivered_.notify_all();
  }
  mutex_.unlock();
}

void MemoryStore::start_expiry_thread() {
  if (expiry_thread_.joinable()) {
    return;
  }
  try {
    expiry_thread_ = std::jthread([this](const std::stop_token& stop) { run_expiry(stop); });
  } catch (const std::system_error&) {
    // Without a thread, leases expire at the next operation; the next grant_lease() tries again.
    return;
  }
}

void MemoryStore::run_expiry(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::optional<sys::BootTime> next;
    {
      const sys::MutexGuard lock(mutex_);
      // Then the deadline, in one step: a lease that is granted later notifies the alarm.
      expire_leases(cluster_time());
      alarm_set_ = machine_.next_deadline();
      if (alarm_set_) {
        next = began_ + *alarm_set_;
      }
    }
    drain_notifications();
    alarm_->wait_until(next);
  }
}

}  // namespace tenure::backends
