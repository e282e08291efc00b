#include "backends/memory/memory_store.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "backends/memory/core_types.hpp"
#include "sys/fork.hpp"

namespace tenure::backends {
namespace {

core::Limits limits() {
  // Nobody retries across a function call, and late watchers are few.
  core::Limits chosen;
  chosen.answers_per_lease_max = 16;
  // A thin hold must always find room.
  chosen.items_per_lease_max = 1'000'000'000;
  // The memory of this process is the limit.
  chosen.state_bytes_max = std::size_t{1} << 40;
  return chosen;
}

core::LeaseId to_core(LeaseId lease) {
  return core::LeaseId{lease.get()};
}

LeaseId from_core(core::LeaseId lease) {
  return LeaseId{lease.get()};
}

bool concerns(const WatchRequest& watch, std::string_view name) {
  return watch.scope == WatchScope::prefix ? name.starts_with(watch.name) : name == watch.name;
}

/// The stores that have a name, while they live. Those of a parent are of no use in its child:
/// their threads do not exist there, and their locks are the parent's.
struct Registry {
  using Key = std::pair<std::uint32_t, std::string>;  ///< Generation of the process, and name.
  sys::Mutex mutex;
  std::map<Key, std::weak_ptr<MemoryStore>> stores TENURE_GUARDED_BY(mutex);
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

MemoryStore::MemoryStore(sys::Clock& clock, ThinHolds thin)
    : clock_(clock),
      began_(clock.now()),
      thin_mode_(thin),
      machine_(limits(), core::newest_version),
      alarm_(clock.make_alarm()) {}

MemoryStore::~MemoryStore() {
  std::jthread ticker;
  {
    const sys::MutexGuard lock(mutex_);
    ticker = std::move(ticker_);
  }
  ticker.request_stop();
  alarm_->ring();
}

std::shared_ptr<MemoryStore> MemoryStore::named(const std::string& name) {
  if (name.empty()) {
    return std::make_shared<MemoryStore>();
  }
  auto& all = registry();
  const sys::MutexGuard lock(all.mutex);
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
    members_.erase(member);
    std::erase_if(watchers_, [&](const auto& entry) { return entry.second.member == member; });
    std::vector<LeaseId> leases;
    for (const auto& [lease, whose] : leases_) {
      if (whose == member) {
        leases.push_back(lease);
      }
    }
    std::ranges::sort(leases);
    for (const auto lease : leases) {
      end_lease(lease);
    }
  }
  speak();
  // What another thread is saying to this member at the moment must come to its end.
  const sys::MutexGuard lock(mutex_);
  const auto is_for_it = [&](const Saying& saying) { return saying.to == member; };
  while (spoken_to_ == member || std::ranges::any_of(sayings_, is_for_it)) {
    spoken_.wait(mutex_);
  }
}

void MemoryStore::grant_lease(MemberId member, const LeaseRequest& request,
                              Backend::Done<void> done) {
  Result<void> answer;
  {
    const sys::MutexGuard lock(mutex_);
    start_ticking();
    const auto applied = apply(core::GrantLease{
        .id = to_core(request.id), .ttl = request.ttl, .client = {}, .address = "this process"});
    if (const auto* refused = std::get_if<core::Refused>(&applied.outcome)) {
      answer = std::unexpected(backends::from_core(*refused));
    } else {
      leases_.emplace(request.id, member);
    }
  }
  speak();
  done(std::move(answer));
}

void MemoryStore::renew_leases(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done) {
  Renewed renewed;
  {
    const sys::MutexGuard lock(mutex_);
    core::RenewLeases command;
    std::ranges::transform(leases, std::back_inserter(command.leases),
                           [](LeaseId lease) { return to_core(lease); });
    const auto applied = apply(command);
    if (const auto* answers = std::get_if<core::Renewed>(&applied.outcome)) {
      for (const auto& answer : answers->answers) {
        renewed.push_back(answer.ttl.has_value());
      }
    }
  }
  speak();
  done(std::move(renewed));
}

void MemoryStore::set_ttl(const TtlRequest& request, Backend::Done<void> done) {
  Result<void> answer;
  {
    const sys::MutexGuard lock(mutex_);
    const auto applied = apply(core::SetTtl{.lease = to_core(request.lease),
                                            .request = core::RequestId{request.request.get()},
                                            .ttl = request.ttl});
    if (const auto* refused = std::get_if<core::Refused>(&applied.outcome)) {
      answer = std::unexpected(backends::from_core(*refused));
    } else if (!std::get<core::Renewed>(applied.outcome).answers.front().ttl) {
      answer = std::unexpected(lease_is_lost(request.lease));
    }
  }
  speak();
  done(std::move(answer));
}

void MemoryStore::revoke_lease(LeaseId lease, Backend::Done<void> done) {
  bool was_there = false;
  {
    const sys::MutexGuard lock(mutex_);
    was_there = leases_.contains(lease);
    end_lease(lease);
  }
  speak();
  done(was_there ? Result<void>() : std::unexpected(lease_is_lost(lease)));
}

void MemoryStore::acquire(AcquireRequest request, Backend::Done<Granted> done) {
  std::optional<Result<Granted>> answer;
  bool is_thin = false;
  {
    const sys::MutexGuard lock(mutex_);
    if (auto granted = grant_thin(request)) {
      is_thin = true;
      answer = *granted;
    } else {
      answer = acquire_in_core(request, done);
    }
  }
  if (!is_thin) {
    speak();
  }
  if (answer) {
    done(*std::move(answer));
  }
}

void MemoryStore::abandon(LeaseId lease, RequestId request) {
  std::optional<Waiting> ended;
  {
    const sys::MutexGuard lock(mutex_);
    const auto it = waiting_.find({lease, request});
    if (it == waiting_.end()) {
      return;  // answered already
    }
    const auto applied =
        apply(core::Abandon{.lease = to_core(lease), .request = core::RequestId{request.get()}});
    // If its lease has just expired, its end was told on the way.
    if (std::holds_alternative<core::Refused>(applied.outcome)) {
      ended = std::move(waiting_.extract({lease, request}).mapped());
    }
  }
  speak();
  if (ended) {
    ended->done(fail(Errc::cancelled));
  }
}

void MemoryStore::release(const ReleaseRequest& request, Backend::Done<void> done) {
  Result<void> answer;
  bool is_thin = false;
  {
    const sys::MutexGuard lock(mutex_);
    is_thin = thin_.remove(request);
    if (!is_thin) {
      answer = release_in_core(request);
    }
  }
  if (!is_thin) {
    speak();
  }
  done(std::move(answer));
}

void MemoryStore::downgrade(const DowngradeRequest& request, Backend::Done<void> done) {
  Result<void> answer;
  {
    const sys::MutexGuard lock(mutex_);
    // Others may come beside it from now on: that is for the state machine to decide.
    thicken(request.ask->items.front().name);
    answer =
        apply_for(request.lease, core::Downgrade{.lease = to_core(request.lease),
                                                 .request = core::RequestId{request.request.get()},
                                                 .token = thin_.there(request.token),
                                                 .mode = request.mode});
  }
  speak();
  done(std::move(answer));
}

WatchId MemoryStore::watch(MemberId member, WatchRequest request, Backend::Sink sink) {
  WatchId id;
  {
    const sys::MutexGuard lock(mutex_);
    thicken_all();
    id = WatchId{++last_watch_};
    const auto told = std::make_shared<Backend::Sink>(std::move(sink));
    const auto& events = machine_.state().events;
    if (request.start != Revision{} && request.start.get() <= events.compact_revision().get()) {
      say(member, [told, gone = events.compact_revision().get()] {
        (*told)(fail(Errc::invalid_argument, "events up to revision " + std::to_string(gone) +
                                                 " are forgotten; look, then watch from there"));
      });
      return id;
    }
    if (request.start != Revision{}) {
      for (const auto& event : events.since(core::Revision{request.start.get()})) {
        if (concerns(request, event.item.name.view())) {
          say(member, [told, happened = backends::from_core(event)] { (*told)(happened); });
        }
      }
    }
    watchers_.emplace(id, Watcher{.request = std::move(request), .sink = told, .member = member});
  }
  speak();
  return id;
}

void MemoryStore::unwatch(WatchId watch) {
  const sys::MutexGuard lock(mutex_);
  watchers_.erase(watch);
}

std::vector<Holder> MemoryStore::holders(const std::string& name) {
  const sys::MutexGuard lock(mutex_);
  thicken(name);
  std::vector<Holder> found;
  const auto& locks = machine_.state().locks;
  if (const auto* lock_there = locks.find(core::PlaceView{.name = name})) {
    for (const auto token : lock_there->holds()) {
      const auto& hold = *locks.find(token);
      found.push_back({.owner = hold.owner,
                       .token = thin_.told(token),
                       .lease = from_core(hold.lease),
                       .metadata = hold.metadata});
    }
  }
  return found;
}

bool MemoryStore::force_release(const std::string& name) {
  bool was_held = false;
  {
    const sys::MutexGuard lock(mutex_);
    thicken(name);
    const auto applied = apply(core::ForceRelease{.place = {.name = name}});
    was_held = std::holds_alternative<core::Forced>(applied.outcome);
  }
  speak();
  return was_held;
}

}  // namespace tenure::backends
