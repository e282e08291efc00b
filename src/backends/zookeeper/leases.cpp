#include <algorithm>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/errors.hpp"
#include "backends/zookeeper/locks.hpp"
#include "backends/zookeeper/session_timing.hpp"

// Leases, and the sessions that carry them.

namespace tenure::backends::zookeeper {
namespace {

using Clock = TimerThread::Clock;

/// Maximum number of sessions. Each TTL in use needs one: a connection and two threads.
constexpr std::size_t sessions_max = 16;
/// TTL of the main session, which is opened first and stays open: the default of LockOptions::ttl.
constexpr milliseconds default_ttl{30'000};

Error session_ended() {
  return {.code = Errc::lease_lost,
          .detail = "the ZooKeeper session ended with all its leases; request a new one"};
}

/// Reason why a session with this timeout cannot carry leases of this TTL; empty if it can.
std::optional<Error> rejection_of(milliseconds ttl, milliseconds timeout) {
  const auto requested = timeout_for(ttl);
  const auto prefix = "ttl is " + std::to_string(ttl.count()) + " ms, and needs a session of " +
                      std::to_string(requested.count()) + " ms; the servers give ";
  if (timeout > requested) {
    return Error{.code = Errc::invalid_argument,
                 .detail = prefix + "at least " + std::to_string(timeout.count()) +
                           " ms (minSessionTimeout): a ttl of " +
                           std::to_string(shortest_ttl(timeout).count() + 1) + " ms or more"};
  }
  if (timeout < requested && longest_ttl(timeout) < ttl) {
    return Error{.code = Errc::invalid_argument,
                 .detail = prefix + "at most " + std::to_string(timeout.count()) +
                           " ms (maxSessionTimeout): a ttl of " +
                           std::to_string(longest_ttl(timeout).count()) + " ms or less"};
  }
  return std::nullopt;
}

}  // namespace

// Sessions.

void Locks::open() {
  main_slot_ = new_slot(default_ttl).number;
}

void Locks::set_listener(Listener* listener) {
  listener_ = listener;
  report_connection();
}

// Leases of one TTL share a session. An idle session gives its slot to a new TTL.
Locks::SessionSlot* Locks::slot_for(milliseconds ttl) {
  for (auto& [number, slot] : slots_) {
    if (slot.ttl == ttl) {
      return &slot;
    }
  }
  if (slots_.size() >= sessions_max) {
    const auto idle = std::ranges::find_if(slots_, [&](const auto& entry) {
      return entry.second.leases.empty() && entry.first != main_slot_;
    });
    if (idle == slots_.end()) {
      return nullptr;
    }
    retire(idle->first);
  }
  return &new_slot(ttl);
}

Locks::SessionSlot& Locks::new_slot(milliseconds ttl) {
  const Number number = ++last_number_;
  auto& slot = slots_[number];
  slot.number = number;
  slot.ttl = ttl;
  // A slot without leases is retired after one session timeout, see send_heartbeat().
  slot.idle_since = Clock::now();
  slot.session = std::make_unique<Session>(
      Session::Environment{.strand = environment_.strand,
                           .timers = environment_.timers,
                           .later =
                               [this, number](Clock::time_point when, Strand::Job job) {
                                 call_later(when, [this, number, job = std::move(job)]() mutable {
                                   if (slots_.contains(number)) {
                                     job();
                                   }
                                 });
                               }},
      timeout_for(ttl),
      Session::Callbacks{
          .changed = [this, number](Connection::State state) { slot_state_changed(number, state); },
          .deleted_externally = [this, number](ClaimId claim) { claim_lost(number, claim); },
          .children = [this,
                       number](const std::string& folder) { permits_changed(number, folder); }});
  // Opening resolves host names, so it runs on the timer thread. The session is closed there too,
  // after this job.
  environment_.timers.call_soon([this, number, session = slot.session.get()] {
    if (const auto opened =
            session->connection().open(environment_.address, session->requested_timeout());
        !opened) {
      environment_.strand.dispatch([&] { slot_ended(number, opened.error()); });
    }
  });
  send_heartbeat(number);
  return slot;
}

void Locks::slot_state_changed(Number number, Connection::State state) {
  const auto it = slots_.find(number);
  if (it == slots_.end()) {
    return;
  }
  switch (state) {
    case Connection::State::connected: slot_connected(it->second); break;
    case Connection::State::connecting: break;
    case Connection::State::expired: slot_ended(number, session_ended()); break;
    case Connection::State::auth_failed:
      slot_ended(number, {.code = Errc::permission_denied,
                          .detail = hosts_of(environment_.address) +
                                    ": the servers do not accept user and password"});
      break;
  }
  report_connection();
}

void Locks::slot_connected(SessionSlot& slot) {
  if (!slot.is_accepted) {
    slot.rejection = rejection_of(slot.ttl, slot.session->connection().timeout());
    if (slot.rejection && slot.number != main_slot_) {
      slot_ended(slot.number, *slot.rejection);
      return;
    }
    slot.is_accepted = !slot.rejection;
    complete_grants(slot, slot.rejection);
  }
  if (slot.number == main_slot_) {
    environment_.opened({});
  }
}

void Locks::complete_grants(SessionSlot& slot, const std::optional<Error>& why) {
  for (auto& [lease, done] : std::exchange(slot.pending_grants, {})) {
    environment_.deferred.complete(std::move(done), why ? std::unexpected(*why) : Result<void>());
  }
}

/// Ends a slot, with the leases and holds of its session.
// Leases without a node at the servers migrate to a new session; the client never notices. All
// others are lost.
void Locks::slot_ended(Number number, const Error& reason) {
  const auto it = slots_.find(number);
  if (it == slots_.end()) {
    return;
  }
  const auto why = reason;  // Copy: `reason` may be a member of the slot that is destroyed below.
  auto& slot = it->second;
  std::vector<LeaseId> leases;
  std::vector<LeaseId> migrating;
  for (const auto id : slot.leases) {
    const bool is_migrating =
        slot.is_accepted && why.code == Errc::lease_lost && can_migrate(leases_.at(id));
    (is_migrating ? migrating : leases).push_back(id);
  }
  std::vector<Number> holds;
  for (const auto& [one, hold] : holds_) {
    if (hold->slot == number && std::ranges::find(migrating, hold->lease) == migrating.end()) {
      holds.push_back(one);
    }
  }
  // A lease that was never granted is rejected, not lost: its waits report the reason.
  const bool was_good = slot.is_accepted;
  complete_grants(slot, why);
  retire(number);
  std::ranges::sort(holds);
  for (const auto one : holds) {
    auto& hold = *find(one);
    settle(hold, std::unexpected(was_good ? session_ended() : why));
    auto callbacks = std::move(hold.on_released);
    forget(one);
    for (auto& on_released : callbacks) {
      on_released(fail(Errc::not_held));
    }
  }
  for (const auto lease : leases) {
    leases_.erase(lease);
    if (listener_ != nullptr && was_good) {
      environment_.deferred.add([listener = listener_, lease] { listener->lease_lost(lease); });
    }
  }
  for (const auto& [one, query] : std::exchange(queries_, {})) {
    fail_query(*query);
  }
  if (number == main_slot_ && !is_ended_) {
    main_slot_ = 0;
    reopen_main(why);
  }
  for (const auto lease : migrating) {
    migrate(lease);
  }
}

bool Locks::can_migrate(const Lease& lease) {
  return std::ranges::all_of(lease.holds, [this](Number number) {
    const auto& hold = *find(number);
    return !hold.granted && !hold.is_releasing && !hold.owns_gate &&
           !session_of(hold)->exists(hold.claim);
  });
}

void Locks::migrate(LeaseId id) {
  auto& lease = leases_.at(id);
  auto* const slot = slot_for(lease.ttl);
  if (slot == nullptr) {
    // Unreachable, because the slot of the ended session is free; otherwise the lease would expire.
    return;
  }
  slot->leases.push_back(id);
  lease.slot = slot->number;
  for (const auto number : std::vector<Number>(lease.holds)) {
    auto& hold = *find(number);
    by_claim_.erase({hold.slot, hold.claim});
    hold.slot = slot->number;
    begin_claim(number);
  }
}

/// Reopens the main session, at once after an expiry and after a delay after a rejection.
void Locks::reopen_main(const Error& why) {
  constexpr std::chrono::seconds pause{1};
  environment_.opened(std::unexpected(why));
  if (why.code == Errc::lease_lost) {
    main_slot_ = new_slot(default_ttl).number;
    return;
  }
  call_later(Clock::now() + pause, [this] { main_slot_ = new_slot(default_ttl).number; });
}

/// Closes a session on the timer thread, because that may block.
void Locks::retire(Number number) {
  const auto it = slots_.find(number);
  it->second.session->end();
  environment_.timers.call_soon([session = std::move(it->second.session)] {});
  slots_.erase(it);
}

/// Heartbeat; docs/decisions/0020 explains why those of the C client are too rare.
void Locks::send_heartbeat(Number number) {
  const auto it = slots_.find(number);
  if (it == slots_.end()) {
    return;
  }
  auto& slot = it->second;
  const auto now = Clock::now();
  const bool is_idle = slot.leases.empty() && number != main_slot_;
  if (is_idle && now > slot.idle_since + slot.session->requested_timeout()) {
    retire(number);
    return;
  }
  auto timeout = slot.session->requested_timeout();
  if (slot.session->is_connected()) {
    slot.session->connection().sync([](const Reply&) {});
    // The servers may grant less.
    timeout = std::min(timeout, slot.session->connection().timeout());
  }
  call_later(now + heartbeat_interval(timeout), [this, number] { send_heartbeat(number); });
}

void Locks::report_connection() {
  const auto main = slots_.find(main_slot_);
  const bool is_connected = main != slots_.end() && main->second.session->is_connected();
  if (listener_ == nullptr || is_reported_connected_ == is_connected) {
    return;
  }
  is_reported_connected_ = is_connected;
  environment_.deferred.add([listener = listener_, is_connected] {
    listener->connection_changed(is_connected, is_connected ? "" : "connection lost");
  });
}

void Locks::call_later(Clock::time_point when, Strand::Job job) {
  environment_.timers.call_at(when, [this, job = std::move(job)]() mutable {
    environment_.strand.dispatch([&] {
      if (!is_ended_) {
        job();
      }
    });
  });
}

// Leases.

void Locks::grant_lease(const LeaseRequest& request, Backend::Done<void> done) {
  auto* const slot = slot_for(request.ttl);
  if (slot == nullptr) {
    environment_.deferred.complete(
        std::move(done),
        fail(Errc::resource_exhausted,
             "each TTL in use needs its own ZooKeeper session, and this client has " +
                 std::to_string(sessions_max) + " of them; use fewer different TTLs"));
    return;
  }
  slot->leases.push_back(request.id);
  auto& lease = leases_[request.id];
  lease = {.ttl = request.ttl, .slot = slot->number, .deadline = Clock::now() + request.ttl};
  call_later(lease.deadline, [this, id = request.id] { check_deadline(id); });
  if (slot->is_accepted) {
    environment_.deferred.complete(std::move(done), {});
  } else if (slot->rejection) {
    environment_.deferred.complete(std::move(done), std::unexpected(*slot->rejection));
  } else {
    slot->pending_grants.emplace_back(request.id, std::move(done));
  }
}

// The deadline is extended before the reply: the client itself counts the TTL from before the
// request, so its own deadline is the earlier one.
void Locks::renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done) {
  const auto renewal = std::make_shared<FanIn<Renewed>>(
      [this, done = std::move(done)](Result<Renewed> renewed) mutable {
        environment_.deferred.complete(std::move(done), std::move(renewed));
      },
      Renewed(leases.size(), true));
  std::map<Number, std::vector<std::size_t>> parts;
  for (std::size_t index = 0; index < leases.size(); ++index) {
    const auto it = leases_.find(leases[index]);
    if (it == leases_.end()) {
      mark_lost(*renewal, index);
      continue;
    }
    it->second.deadline = Clock::now() + it->second.ttl;
    parts[it->second.slot].push_back(index);
  }
  for (auto& [slot, indexes] : parts) {
    renew_part(renewal, slot, std::move(indexes));
  }
  renewal->part_done();
}

void Locks::renew_part(const std::shared_ptr<FanIn<Renewed>>& renewal, Number slot,
                       std::vector<std::size_t> indexes) {
  auto& session = *slots_.at(slot).session;
  if (!session.is_connected()) {
    renewal->fail({.code = Errc::unavailable, .detail = "no connection to ZooKeeper"});
    return;
  }
  renewal->add();
  // Only the leader knows whether the session is alive; a partitioned follower would confirm it for
  // a while.
  session.connection().sync([this, renewal, indexes = std::move(indexes)](const Reply& reply) {
    if (reply.code == ZSESSIONEXPIRED) {
      for (const auto index : indexes) {
        mark_lost(*renewal, index);
      }
    } else if (reply.code != ZOK) {
      renewal->fail(error_from(reply.code, hosts_of(environment_.address)));
    }
    renewal->part_done();
  });
}

// The deadline belongs to the lease, not to the session, which other leases share.
void Locks::check_deadline(LeaseId id) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    return;
  }
  if (it->second.deadline > Clock::now()) {
    call_later(it->second.deadline, [this, id] { check_deadline(id); });
    return;
  }
  // The lease was not renewed in time. Its session stays alive for other leases.
  if (listener_ != nullptr) {
    environment_.deferred.add([listener = listener_, id] { listener->lease_lost(id); });
  }
  revoke(id, [](const Result<void>&) {});
}

void Locks::revoke(LeaseId id, Backend::Done<void> done) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    environment_.deferred.complete(std::move(done), {});
    return;
  }
  const auto lease = std::move(it->second);
  leases_.erase(it);
  auto& slot = slots_.at(lease.slot);
  std::erase(slot.leases, id);
  slot.idle_since = Clock::now();
  for (auto& [waiting, granted] : slot.pending_grants) {
    if (waiting == id) {
      environment_.deferred.complete(std::move(granted), std::unexpected(session_ended()));
    }
  }
  std::erase_if(slot.pending_grants, [&](const auto& one) { return one.first == id; });
  const auto parts =
      std::make_shared<FanIn<void>>([this, done = std::move(done)](Result<void> result) mutable {
        environment_.deferred.complete(std::move(done), std::move(result));
      });
  for (const auto number : lease.holds) {
    settle(*find(number), fail(Errc::lease_lost, "the lease of this wait ended; retry"));
    parts->add();
    release_hold(number, [parts](const Result<void>& answer) {
      // A node that is gone counts as released.
      if (!answer && answer.error() != Errc::not_held) {
        parts->fail(answer.error());
      }
      parts->part_done();
    });
  }
  parts->part_done();
}

// Callbacks are deferred, so they run after the strand is unlocked.
void Locks::end() {
  is_ended_ = true;
  listener_ = nullptr;
  const Error ends{.code = Errc::unavailable, .detail = "the client is closed"};
  std::vector<Number> numbers;
  for (auto& [number, slot] : slots_) {
    slot.is_accepted = false;  // The holds fail with `ends`, not with a session loss.
    numbers.push_back(number);
  }
  for (const auto& [one, query] : std::exchange(queries_, {})) {
    fail_query(*query);
  }
  for (auto& [number, hold] : holds_) {
    settle(*hold, std::unexpected(ends));
    for (auto& on_released : std::exchange(hold->on_released, {})) {
      on_released(std::unexpected(ends));
    }
  }
  for (auto& [number, slot] : slots_) {
    complete_grants(slot, ends);
    slot.session->end();
  }
}

std::vector<Session*> Locks::sessions() {
  std::vector<Session*> all;
  for (auto& [number, slot] : slots_) {
    all.push_back(slot.session.get());
  }
  return all;
}

}  // namespace tenure::backends::zookeeper
