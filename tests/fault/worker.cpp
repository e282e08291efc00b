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
constexpr auto space = "chaos/k0";  // key space of the ranges that clients.py locks
constexpr std::array role_names{"mutex",     "rw_lock",   "semaphore", "election",
                                "two_locks", "unchecked", "task"};

/// Sleeps until the time has passed or the stop token is triggered.
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

history::Item item_in_mode(const char* name, LockMode mode) {
  return {.name = name, .mode = mode, .permits = {}, .range = {}};
}

/// Interval at which the validity of a hold is recorded.
constexpr milliseconds sample_interval{40};

}  // namespace

std::vector<std::string> all_names() {
  std::vector<std::string> names(mutexes.begin(), mutexes.end());
  names.insert(names.end(), rw_locks.begin(), rw_locks.end());
  names.insert(names.end(), crossed.begin(), crossed.end());
  names.insert(names.end(), {semaphore, election, space});
  return names;
}

Worker::Worker(WorkloadContext& context, Role role, int number, std::uint64_t seed)
    : context_(context),
      role_(role),
      id_(context.name + "." + role_names[static_cast<std::size_t>(role)] + std::to_string(number)),
      random_(seed) {}

void Worker::run() {
  while (!context_.stop.stop_requested()) {
    run_once();
    pause(context_.pause_max);
  }
}

void Worker::run_once() {
  switch (role_) {
    case Role::mutex: return use_mutex();
    case Role::rw_lock: return use_rw_lock();
    case Role::semaphore: return use_semaphore();
    case Role::election: return use_election();
    case Role::two_locks: return use_two_locks();
    case Role::unchecked: return write_unchecked();
    case Role::task: return use_task();
  }
}

void Worker::use_mutex() {
  const auto* name = mutexes[random_below(mutexes.size())];
  RequestSpec spec{.items = {item_in_mode(name, LockMode::exclusive)}};
  spec.lease = random_lease();
  if (is_one_in(5)) {
    spec.policy = history::WaitPolicy::attempt;
  }
  const auto request = invoke(spec);
  const auto mutex = context_.client.mutex(name, options(spec, request));
  if (spec.policy == history::WaitPolicy::attempt) {
    finish(spec, request, mutex.try_lock());
  } else if (is_one_in(5)) {
    const milliseconds test_timeout(random_below(200) + 1);
    timeout_at_ = now() + std::chrono::microseconds(test_timeout).count();
    finish(spec, request, mutex.try_lock_for(test_timeout, context_.stop));
    timeout_at_ = 0;
  } else {
    finish(spec, request, mutex.lock(context_.stop));
  }
}

void Worker::use_rw_lock() {
  const auto* name = rw_locks[random_below(rw_locks.size())];
  const bool writes = is_one_in(4);
  RequestSpec spec{.items = {item_in_mode(name, writes ? LockMode::exclusive : LockMode::shared)}};
  spec.lease = random_lease();
  const auto request = invoke(spec);
  const auto lock = context_.client.rw_lock(name, options(spec, request));
  if (!writes) {
    finish(spec, request, lock.lock_shared(context_.stop));
    return;
  }
  auto held = lock.lock(context_.stop);
  if (!held || !is_one_in(3)) {
    finish(spec, request, std::move(held));
    return;
  }
  granted(spec, request, *held);
  auto weaker = spec.items;
  weaker.front().mode = LockMode::shared;
  context_.recorder.write(
      {.kind = Kind::downgrade, .at = now(), .request = request, .items = std::move(weaker)});
  auto share = lock.downgrade(*held);
  if (share) {
    hold(spec, request, *share);
  } else {
    release(spec, request, *held);
  }
}

void Worker::use_semaphore() {
  const auto wanted = static_cast<std::uint32_t>(random_below(2) + 1);
  RequestSpec spec{.items = {{.name = semaphore,
                              .permits = history::Permits{.wanted = wanted, .capacity = permits},
                              .range = {}}}};
  spec.lease = random_lease();
  const auto request = invoke(spec);
  const SemaphoreSize size{.capacity = permits, .taken_at_once = wanted};
  finish(spec, request,
         context_.client.semaphore(semaphore, size, options(spec, request)).acquire(context_.stop));
}

void Worker::use_election() {
  const RequestSpec spec{.items = {item_in_mode(election, LockMode::exclusive)}};
  const auto request = invoke(spec);
  finish(
      spec, request,
      context_.client.election(election, options(spec, request)).campaign(request, context_.stop));
}

// Acquires two locks under one lease in random order, which can deadlock; the request that closes
// the cycle is the victim. A quarter of the rounds acquires both atomically, which cannot deadlock.
void Worker::use_two_locks() {
  if (!ensure_lease()) {
    return;
  }
  auto names = crossed;
  if (is_one_in(2)) {
    std::swap(names[0], names[1]);
  }
  if (is_one_in(4)) {
    const RequestSpec both{.items = {item_in_mode(crossed[0], LockMode::exclusive),
                                     item_in_mode(crossed[1], LockMode::exclusive)},
                           .lease = lease_};
    const auto request = invoke(both);
    finish(both, request,
           context_.client.all_of({crossed[0], crossed[1]}, options(both, request))
               .lock(context_.stop));
    return;
  }
  const RequestSpec first{.items = {item_in_mode(names[0], LockMode::exclusive)}, .lease = lease_};
  const auto outer = invoke(first);
  auto held = context_.client.mutex(names[0], options(first, outer)).lock(context_.stop);
  if (!held) {
    fail(first, outer, held.error());
    return;
  }
  granted(first, outer, *held);
  pause(context_.hold_max);
  const RequestSpec second{.items = {item_in_mode(names[1], LockMode::exclusive)}, .lease = lease_};
  const auto inner = invoke(second);
  finish(second, inner,
         context_.client.mutex(names[1], options(second, inner)).lock(context_.stop));
  release(first, outer, *held);
}

// Writes without checking the lock first: only the fence of the storage can reject the write.
void Worker::write_unchecked() {
  const auto* name = mutexes[random_below(mutexes.size())];
  const RequestSpec spec{.items = {item_in_mode(name, LockMode::exclusive)}};
  const auto request = invoke(spec);
  auto held = context_.client.mutex(name, options(spec, request)).lock(context_.stop);
  if (!held) {
    fail(spec, request, held.error());
    return;
  }
  granted(spec, request, *held);
  pause(5 * context_.hold_max);  // Longer than the other roles, so that a pause of the process
                                 // often hits it.
  context_.ledger.write(name, held->token());
  release(spec, request, *held);
}

void Worker::use_task() {
  const auto* name = mutexes[random_below(mutexes.size())];
  const RequestSpec spec{.items = {item_in_mode(name, LockMode::exclusive)}};
  const auto request = invoke(spec);
  std::latch done(1);
  lock_in_coroutine(spec, request, context_.client.mutex(name, options(spec, request)), done);
  done.wait();
}

// References are valid, since the worker waits for the latch; the coroutine owns the mutex.
test::Detached Worker::lock_in_coroutine(const RequestSpec& spec, const std::string& request,
                                         Mutex mutex, std::latch& done) {
  auto held = co_await mutex.lock_async(context_.stop);
  if (held) {
    granted(spec, request, *held);
    record(Kind::release, request);
    const auto unlocked = co_await held->unlock_async();
    if (unlocked) {
      record(Kind::released, request);
    } else {
      record_lost(spec, request);
    }
  } else {
    fail(spec, request, held.error());
  }
  done.count_down();
}

std::string Worker::invoke(const RequestSpec& spec) {
  auto request = id_ + "-" + std::to_string(++requests_);
  invoked_ = now();
  context_.recorder.write({.kind = Kind::invoke,
                           .at = invoked_,
                           .client = id_,
                           .owner = owner_of(spec, request),
                           .request = request,
                           .items = spec.items,
                           .policy = spec.policy});
  return request;
}

void Worker::fail(const RequestSpec& spec, const std::string& request, const Error& error) {
  // The request left the queue before this reply, and the next waiter may be granted earlier.
  if (const auto left = error == Errc::timed_out ? timeout_at_ : context_.stopped.load();
      left != 0 && (error == Errc::timed_out || error == Errc::cancelled)) {
    context_.recorder.write(
        {.kind = Kind::leave, .at = std::max(left, invoked_ + 1), .request = request});
  }
  context_.recorder.write(
      {.kind = Kind::failed, .at = now(), .request = request, .why = why(error.code)});
  if (!spec.lease || error == Errc::lease_lost) {
    // A grant that this client did not observe ends with the request's own lease.
    record_lost(spec, request);
  }
}

template <class Held>
void Worker::finish(const RequestSpec& spec, const std::string& request, Result<Held> held) {
  if (!held) {
    fail(spec, request, held.error());
    return;
  }
  granted(spec, request, *held);
  hold(spec, request, *held);
}

void Worker::granted(const RequestSpec& spec, const std::string& request, const LockHandle& held) {
  context_.recorder.write({.kind = Kind::granted,
                           .at = now(),
                           .request = request,
                           .token = held.token().get(),
                           .until = history_time(held.valid_until())});
  record_renewed(owner_of(spec, request), held.valid_until());
}

void Worker::hold(const RequestSpec& spec, const std::string& request, LockHandle& held) {
  const auto owner = owner_of(spec, request);
  const auto& item = spec.items.front();
  // Mostly short; one in 50 holds lasts longer than the TTL and depends on renewals.
  auto left = milliseconds(random_below(static_cast<std::uint64_t>(
      (is_one_in(50) ? context_.ttl * 3 / 2 : context_.hold_max).count() + 1)));
  while (held.owns_lock() && !context_.stop.stop_requested()) {
    if (item.mode == LockMode::exclusive && !item.permits) {
      context_.ledger.write(item.name, held.token());
    }
    if (left <= milliseconds::zero()) {
      break;
    }
    sleep_for(std::min(left, sample_interval), context_.stop);
    left -= sample_interval;
    record_renewed(owner, held.valid_until());
  }
  release(spec, request, held);
}

void Worker::release(const RequestSpec& spec, const std::string& request, LockHandle& held) {
  record(Kind::release, request);
  const auto unlocked = held.unlock();
  if (unlocked) {
    record(Kind::released, request);
    return;
  }
  record_lost(spec, request);
}

std::string Worker::owner_of(const RequestSpec& spec, const std::string& request) {
  return spec.lease ? "lease." + std::to_string(spec.lease->id().get()) : request;
}

LockOptions Worker::options(const RequestSpec& spec, const std::string& request) const {
  LockOptions options;
  options.ttl = context_.ttl;
  options.metadata = request;  // Identifies the request in watch events.
  options.lease = spec.lease;
  return options;
}

void Worker::record(Kind kind, const std::string& request) {
  context_.recorder.write({.kind = kind, .at = now(), .request = request});
}

void Worker::record_renewed(const std::string& owner, std::chrono::steady_clock::time_point until) {
  context_.recorder.write(
      {.kind = Kind::renewed, .at = now(), .owner = owner, .until = history_time(until)});
}

void Worker::record_lost(const RequestSpec& spec, const std::string& request) {
  context_.recorder.write({.kind = Kind::lost, .at = now(), .owner = owner_of(spec, request)});
  if (spec.lease) {
    lease_.reset();
  }
}

std::optional<Lease> Worker::random_lease() {
  return is_one_in(2) && ensure_lease() ? lease_ : std::nullopt;
}

bool Worker::ensure_lease() {
  if (lease_ && lease_->is_alive()) {
    return true;
  }
  if (lease_) {
    record_lost({.items = {}, .lease = lease_}, "");
  }
  auto lease = context_.client.lease({.ttl = context_.ttl});
  lease_ = lease ? std::optional(*std::move(lease)) : std::nullopt;
  return lease_.has_value();
}

void Worker::pause(milliseconds longest) {
  sleep_for(milliseconds(random_below(static_cast<std::uint64_t>(longest.count()) + 1)),
            context_.stop);
}

std::uint64_t Worker::random_below(std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random_);
}

}  // namespace tenure::fault
