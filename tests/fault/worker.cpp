#include "fault/worker.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <utility>

namespace tenure::fault {
namespace {

using history::Kind;
using std::chrono::milliseconds;

constexpr std::array mutexes{"chaos/m0", "chaos/m1", "chaos/m2"};
constexpr std::array rw_locks{"chaos/r0", "chaos/r1"};
constexpr auto semaphore = "chaos/s0";
constexpr std::uint32_t permits = 3;
constexpr auto election = "chaos/e0";
constexpr std::array crossed{"chaos/d0", "chaos/d1"};
constexpr auto space = "chaos/k0";  // of the ranges that the driver locks
constexpr std::array role_names{"mutex",   "rw_lock",  "semaphore", "election",
                                "several", "careless", "task"};

/// Sleeps, but not past the end.
void sleep_for(milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
}

std::string why(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    case Errc::resource_exhausted:
    case Errc::permission_denied:
    case Errc::unsupported: return "refused";
    default: return std::string(to_string(code));
  }
}

history::Item in_mode(const char* name, LockMode mode) {
  return {.name = name, .mode = mode, .permits = {}, .range = {}};
}

/// How often a hold is looked at, so that the history knows how long it was believed in.
constexpr milliseconds look_every{40};

}  // namespace

std::vector<std::string> all_names() {
  std::vector<std::string> names(mutexes.begin(), mutexes.end());
  names.insert(names.end(), rw_locks.begin(), rw_locks.end());
  names.insert(names.end(), crossed.begin(), crossed.end());
  names.insert(names.end(), {semaphore, election, space});
  return names;
}

Worker::Worker(Shop& shop, Role role, int number, std::uint64_t seed)
    : shop_(shop),
      role_(role),
      id_(shop.name + "." + role_names[static_cast<std::size_t>(role)] + std::to_string(number)),
      chance_(seed) {}

void Worker::run() {
  while (!shop_.stop.stop_requested()) {
    once();
    pause(shop_.pause_max);
  }
}

void Worker::once() {
  switch (role_) {
    case Role::mutex: return use_mutex();
    case Role::rw_lock: return use_rw_lock();
    case Role::semaphore: return use_semaphore();
    case Role::election: return use_election();
    case Role::several: return use_several();
    case Role::careless: return write_late();
    case Role::task: return use_task();
  }
}

void Worker::use_mutex() {
  const auto* name = mutexes[below(mutexes.size())];
  Claim claim{.items = {in_mode(name, LockMode::exclusive)}};
  claim.lease = maybe_lease();
  if (one_in(5)) {
    claim.asking = history::Asking::attempt;
  }
  const auto request = invoke(claim);
  const auto mutex = shop_.client.mutex(name, options(claim, request));
  if (claim.asking == history::Asking::attempt) {
    finish(claim, request, mutex.try_lock());
  } else if (one_in(5)) {
    const milliseconds test_timeout(below(200) + 1);
    gives_up_ = now() + std::chrono::microseconds(test_timeout).count();
    finish(claim, request, mutex.try_lock_for(test_timeout, shop_.stop));
    gives_up_ = 0;
  } else {
    finish(claim, request, mutex.lock(shop_.stop));
  }
}

void Worker::use_rw_lock() {
  const auto* name = rw_locks[below(rw_locks.size())];
  const bool writes = one_in(4);
  Claim claim{.items = {in_mode(name, writes ? LockMode::exclusive : LockMode::shared)}};
  claim.lease = maybe_lease();
  const auto request = invoke(claim);
  const auto lock = shop_.client.rw_lock(name, options(claim, request));
  if (!writes) {
    finish(claim, request, lock.lock_shared(shop_.stop));
    return;
  }
  auto held = lock.lock(shop_.stop);
  if (!held || !one_in(3)) {
    finish(claim, request, std::move(held));
    return;
  }
  granted(claim, request, *held);
  auto weaker = claim.items;
  weaker.front().mode = LockMode::shared;
  shop_.recorder.write(
      {.kind = Kind::downgrade, .at = now(), .request = request, .items = std::move(weaker)});
  auto share = lock.downgrade(*held);
  if (share) {
    keep(claim, request, *share);
  } else {
    give_back(claim, request, *held);
  }
}

void Worker::use_semaphore() {
  const auto wanted = static_cast<std::uint32_t>(below(2) + 1);
  Claim claim{.items = {{.name = semaphore,
                         .permits = history::Permits{.wanted = wanted, .capacity = permits},
                         .range = {}}}};
  claim.lease = maybe_lease();
  const auto request = invoke(claim);
  const SemaphoreSize size{.capacity = permits, .taken_at_once = wanted};
  finish(claim, request,
         shop_.client.semaphore(semaphore, size, options(claim, request)).acquire(shop_.stop));
}

void Worker::use_election() {
  const Claim claim{.items = {in_mode(election, LockMode::exclusive)}};
  const auto request = invoke(claim);
  finish(claim, request,
         shop_.client.election(election, options(claim, request)).campaign(request, shop_.stop));
}

// Two locks one after the other under one lease, in either order: who closes the circle gives way.
// Now and then both at once, which cannot.
void Worker::use_several() {
  if (!ensure_lease()) {
    return;
  }
  auto names = crossed;
  if (one_in(2)) {
    std::swap(names[0], names[1]);
  }
  if (one_in(4)) {
    const Claim both{.items = {in_mode(crossed[0], LockMode::exclusive),
                               in_mode(crossed[1], LockMode::exclusive)},
                     .lease = lease_};
    const auto request = invoke(both);
    finish(both, request,
           shop_.client.all_of({crossed[0], crossed[1]}, options(both, request)).lock(shop_.stop));
    return;
  }
  const Claim first{.items = {in_mode(names[0], LockMode::exclusive)}, .lease = lease_};
  const auto outer = invoke(first);
  auto held = shop_.client.mutex(names[0], options(first, outer)).lock(shop_.stop);
  if (!held) {
    fail(first, outer, held.error());
    return;
  }
  granted(first, outer, *held);
  pause(shop_.hold_max);
  const Claim second{.items = {in_mode(names[1], LockMode::exclusive)}, .lease = lease_};
  const auto inner = invoke(second);
  finish(second, inner, shop_.client.mutex(names[1], options(second, inner)).lock(shop_.stop));
  give_back(first, outer, *held);
}

// Never asks whether it still holds the lock before it writes: only the storage can stop it.
void Worker::write_late() {
  const auto* name = mutexes[below(mutexes.size())];
  const Claim claim{.items = {in_mode(name, LockMode::exclusive)}};
  const auto request = invoke(claim);
  auto held = shop_.client.mutex(name, options(claim, request)).lock(shop_.stop);
  if (!held) {
    fail(claim, request, held.error());
    return;
  }
  granted(claim, request, *held);
  pause(5 * shop_.hold_max);  // Longer than others: so it is often the one who is stopped there.
  shop_.ledger.write(name, held->token());
  give_back(claim, request, *held);
}

void Worker::use_task() {
  const auto* name = mutexes[below(mutexes.size())];
  const Claim claim{.items = {in_mode(name, LockMode::exclusive)}};
  const auto request = invoke(claim);
  std::latch done(1);
  take_in_a_coroutine(claim, request, shop_.client.mutex(name, options(claim, request)), done);
  done.wait();
}

// By reference, since the worker waits for the latch; the mutex lives in the coroutine.
test::Detached Worker::take_in_a_coroutine(const Claim& claim, const std::string& request,
                                           Mutex mutex, std::latch& done) {
  auto held = co_await mutex.lock_async(shop_.stop);
  if (held) {
    granted(claim, request, *held);
    say(Kind::release, request);
    const auto unlocked = co_await held->unlock_async();
    if (unlocked) {
      say(Kind::released, request);
    } else {
      say_lost(claim, request);
    }
  } else {
    fail(claim, request, held.error());
  }
  done.count_down();
}

std::string Worker::invoke(const Claim& claim) {
  auto request = id_ + "-" + std::to_string(++requests_);
  invoked_ = now();
  shop_.recorder.write({.kind = Kind::invoke,
                        .at = invoked_,
                        .client = id_,
                        .owner = owner_of(claim, request),
                        .request = request,
                        .items = claim.items,
                        .asking = claim.asking});
  return request;
}

void Worker::fail(const Claim& claim, const std::string& request, const Error& error) {
  // It was out of the queue before it was told so, and the next one may know that first.
  if (const auto left = error == Errc::timed_out ? gives_up_ : shop_.stopped.load();
      left != 0 && (error == Errc::timed_out || error == Errc::cancelled)) {
    shop_.recorder.write(
        {.kind = Kind::leave, .at = std::max(left, invoked_ + 1), .request = request});
  }
  shop_.recorder.write(
      {.kind = Kind::failed, .at = now(), .request = request, .why = why(error.code)});
  if (!claim.lease || error == Errc::lease_lost) {
    // Whatever the service made of it ends with the lease, if only this request had it.
    say_lost(claim, request);
  }
}

template <class Held>
void Worker::finish(const Claim& claim, const std::string& request, Result<Held> held) {
  if (!held) {
    fail(claim, request, held.error());
    return;
  }
  granted(claim, request, *held);
  keep(claim, request, *held);
}

void Worker::granted(const Claim& claim, const std::string& request, const LockHandle& held) {
  shop_.recorder.write({.kind = Kind::granted,
                        .at = now(),
                        .request = request,
                        .token = held.token().get(),
                        .until = at(held.valid_until())});
  say_renewed(owner_of(claim, request), held.valid_until());
}

void Worker::keep(const Claim& claim, const std::string& request, LockHandle& held) {
  const auto owner = owner_of(claim, request);
  const auto& item = claim.items.front();
  // Mostly short, now and then longer than a lease: then it lives by its renewals.
  auto left = milliseconds(below(
      static_cast<std::uint64_t>((one_in(50) ? shop_.ttl * 3 / 2 : shop_.hold_max).count() + 1)));
  while (held.owns_lock() && !shop_.stop.stop_requested()) {
    if (item.mode == LockMode::exclusive && !item.permits) {
      shop_.ledger.write(item.name, held.token());
    }
    if (left <= milliseconds::zero()) {
      break;
    }
    sleep_for(std::min(left, look_every), shop_.stop);
    left -= look_every;
    say_renewed(owner, held.valid_until());
  }
  give_back(claim, request, held);
}

void Worker::give_back(const Claim& claim, const std::string& request, LockHandle& held) {
  say(Kind::release, request);
  const auto unlocked = held.unlock();
  if (unlocked) {
    say(Kind::released, request);
    return;
  }
  say_lost(claim, request);
}

std::string Worker::owner_of(const Claim& claim, const std::string& request) {
  return claim.lease ? "lease." + std::to_string(claim.lease->id().get()) : request;
}

LockOptions Worker::options(const Claim& claim, const std::string& request) const {
  LockOptions options;
  options.ttl = shop_.ttl;
  options.metadata = request;  // Watchers read there whom an event is about.
  options.lease = claim.lease;
  return options;
}

void Worker::say(Kind kind, const std::string& request) {
  shop_.recorder.write({.kind = kind, .at = now(), .request = request});
}

void Worker::say_renewed(const std::string& owner, std::chrono::steady_clock::time_point until) {
  shop_.recorder.write({.kind = Kind::renewed, .at = now(), .owner = owner, .until = at(until)});
}

void Worker::say_lost(const Claim& claim, const std::string& request) {
  shop_.recorder.write({.kind = Kind::lost, .at = now(), .owner = owner_of(claim, request)});
  if (claim.lease) {
    lease_.reset();
  }
}

std::optional<Lease> Worker::maybe_lease() {
  return one_in(2) && ensure_lease() ? lease_ : std::nullopt;
}

bool Worker::ensure_lease() {
  if (lease_ && lease_->is_alive()) {
    return true;
  }
  if (lease_) {
    say_lost({.items = {}, .lease = lease_}, "");
  }
  auto lease = shop_.client.lease({.ttl = shop_.ttl});
  lease_ = lease ? std::optional(*std::move(lease)) : std::nullopt;
  return lease_.has_value();
}

void Worker::pause(milliseconds longest) {
  sleep_for(milliseconds(below(static_cast<std::uint64_t>(longest.count()) + 1)), shop_.stop);
}

std::uint64_t Worker::below(std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(chance_);
}

}  // namespace tenure::fault
