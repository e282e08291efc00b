// How long the state machine of the lock service takes for what could grow with the size of the
// store. Prints one line for each, in time of the processor, so that others on the machine count
// for less; no arguments.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <malloc.h>

#include "core/snapshot.hpp"
#include "core/state_machine.hpp"

namespace tenure::core {
namespace {

using std::chrono::seconds;

/// Times from here to its end, for `steps` of whatever it is.
class Timed {
 public:
  Timed(std::string_view what, std::uint64_t steps) : what_(what), steps_(steps) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() {
    const double took = static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC;
    std::printf("%-58.*s %9.1f ms %10.2f us each\n", static_cast<int>(what_.size()), what_.data(),
                took * 1e3, took * 1e6 / static_cast<double>(steps_));
  }

 private:
  std::string_view what_;
  std::uint64_t steps_;
  std::clock_t begin_ = std::clock();
};

StateMachine with_leases(std::uint64_t count) {
  StateMachine machine;
  for (std::uint64_t i = 1; i <= count; ++i) {
    machine.apply(GrantLease{.id = LeaseId{i}, .ttl = seconds(30)}, {});
  }
  return machine;
}

Outcome acquire(StateMachine& machine, std::uint64_t lease, std::uint64_t request, Item item) {
  return machine
      .apply(
          Acquire{
              .lease = LeaseId{lease}, .request = RequestId{request}, .items = {std::move(item)}},
          {})
      .outcome;
}

void release(StateMachine& machine, std::uint64_t lease, FencingToken token) {
  machine.apply(Release{.lease = LeaseId{lease}, .what = token}, {});
}

Item name(std::string text, LockMode mode = LockMode::exclusive) {
  return {.name = std::move(text), .claim = Whole{.mode = mode}};
}

Item range(std::uint64_t start) {
  const auto text = std::to_string(1'000'000 + start);
  return {.name = "space", .claim = Keys{.range = BytesRange::half_open(text, text + "5").value()}};
}

void points() {
  auto machine = with_leases(1);
  constexpr std::uint64_t steps = 100'000;
  const Timed timed("one name: acquire + release", steps);
  for (std::uint64_t i = 0; i < steps; ++i) {
    release(machine, 1, std::get<Granted>(acquire(machine, 1, i + 1, name("a"))).token);
  }
}

/// What a server does all day: 64 clients, each with a lock of its own and as many answers to
/// remember as it may have.
void points_with_histories() {
  constexpr std::uint64_t clients = 64;
  constexpr std::uint64_t rounds = 3'000;
  auto machine = with_leases(clients);
  std::uint64_t request = 0;
  const auto round = [&] {
    for (std::uint64_t i = 1; i <= clients; ++i) {
      const auto token =
          std::get<Granted>(acquire(machine, i, ++request, name("lock " + std::to_string(i))))
              .token;
      machine.apply(Release{.lease = LeaseId{i}, .request = RequestId{++request}, .what = token},
                    {});
    }
  };
  for (std::size_t i = 0; i < machine.state().limits.answers_per_lease_max; ++i) {
    round();
  }
  const Timed timed("one of 64 names, full histories: acquire + release", clients * rounds);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    round();
  }
}

/// A million locks under 100 leases, and their snapshot.
void many_held(std::string_view what, std::uint64_t items_per_request) {
  constexpr std::uint64_t locks = 1'000'000;
  constexpr std::uint64_t leases = 100;
  auto machine = with_leases(leases);
  const auto before = mallinfo2();
  for (std::uint64_t i = 0; i < locks;) {
    Acquire command{.lease = LeaseId{i * leases / locks + 1}, .request = RequestId{i + 1}};
    for (std::uint64_t k = 0; k < items_per_request && i < locks; ++k, ++i) {
      command.items.push_back(name("filled/" + std::to_string(i)));
    }
    machine.apply(command, {});
  }
  const auto after = mallinfo2();
  std::printf("%-58.*s %9.1f bytes each\n", static_cast<int>(what.size()), what.data(),
              static_cast<double>(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) /
                  static_cast<double>(locks));
  std::string bytes;
  {
    const Timed timed("  their snapshot encoded", locks);
    bytes = encode(machine.state());
  }
  const Timed timed("  the same decoded and checked", locks);
  if (!decode(bytes)) {
    std::puts("the snapshot was refused");
  }
}

void ranges() {
  constexpr std::uint64_t held = 10'000;
  constexpr std::uint64_t steps = 10'000;
  auto machine = with_leases(held + 1);
  for (std::uint64_t i = 1; i <= held; ++i) {
    acquire(machine, i, 1, range(2 * i));
  }
  const Timed timed("ranges: acquire + release beside 10,000 held ones", steps);
  for (std::uint64_t i = 0; i < steps; ++i) {
    const auto outcome = acquire(machine, held + 1, i + 1, range(2 * (i % held) + 1));
    release(machine, held + 1, std::get<Granted>(outcome).token);
  }
}

void waiting_ranges() {
  constexpr std::uint64_t waiters = 5'000;
  auto machine = with_leases(2 * waiters);
  std::vector<FencingToken> tokens;
  for (std::uint64_t i = 0; i < waiters; ++i) {
    tokens.push_back(std::get<Granted>(acquire(machine, i + 1, 1, range(2 * i))).token);
  }
  {
    const Timed timed("ranges: 5,000 waiters join, each behind its own holder", waiters);
    for (std::uint64_t i = 0; i < waiters; ++i) {
      acquire(machine, waiters + i + 1, 1, range(2 * i));
    }
  }
  const Timed timed("ranges: 5,000 releases, each lets one in", waiters);
  for (std::uint64_t i = waiters; i > 0; --i) {
    release(machine, i, tokens[i - 1]);
  }
}

void queue() {
  constexpr std::uint64_t waiters = 10'000;
  auto machine = with_leases(waiters + 1);
  acquire(machine, 1, 1, name("a"));
  {
    const Timed timed("one name: 10,000 waiters join the queue", waiters);
    for (std::uint64_t i = 2; i <= waiters + 1; ++i) {
      acquire(machine, i, 1, name("a"));
    }
  }
  auto other = machine;
  {
    const Timed timed("one name: 10,000 releases, each lets one in", waiters);
    for (std::uint64_t i = 1; i <= waiters; ++i) {
      release(machine, i, *machine.state().locks.find(Resource{.name = "a"})->holds().begin());
    }
  }
  {
    const Timed timed("one name: 5,000 ask again from the middle of the queue", waiters / 2);
    for (std::uint64_t i = waiters / 4; i < waiters / 4 * 3; ++i) {
      acquire(other, i, 1, name("a"));
    }
  }
  const Timed timed("one name: 5,000 abandon from the middle of the queue", waiters / 2);
  for (std::uint64_t i = waiters / 4; i < waiters / 4 * 3; ++i) {
    other.apply(Abandon{.lease = LeaseId{i}, .request = RequestId{1}}, {});
  }
}

void holders_in_queues() {
  constexpr std::uint64_t waiters = 3'000;
  auto machine = with_leases(waiters);
  for (std::uint64_t i = 1; i <= waiters; ++i) {
    acquire(machine, i, 1, name("own " + std::to_string(i)));
  }
  {
    const Timed timed("one name: 3,000 waiters join who hold something else", waiters);
    for (std::uint64_t i = 1; i <= waiters; ++i) {
      acquire(machine, i, 2, name("all"));
    }
  }
  const Timed timed("deadlock through the end of that queue", 1);
  acquire(machine, 1, 3, name("own " + std::to_string(waiters)));
}

void permits() {
  constexpr std::uint64_t holders = 2'000;
  auto machine = with_leases(2 * holders);
  const Item one{.name = "p", .claim = Permits{.capacity = holders, .wanted = 1}};
  for (std::uint64_t i = 1; i <= holders; ++i) {
    acquire(machine, i, 1, one);
  }
  const Timed timed("semaphore of 2,000: 2,000 holders want one more", holders);
  for (std::uint64_t i = 1; i <= holders; ++i) {
    acquire(machine, i, 2, one);
  }
}

void leases() {
  constexpr std::uint64_t count = 100'000;
  StateMachine machine;
  {
    const Timed timed("leases: 100,000 granted", count);
    machine = with_leases(count);
  }
  {
    const Timed timed("leases: 100,000 renewed, 10,000 at a time", count);
    for (std::uint64_t from = 1; from <= count; from += 10'000) {
      RenewLeases renewal;
      for (std::uint64_t i = from; i < from + 10'000; ++i) {
        renewal.leases.push_back(LeaseId{i});
      }
      machine.apply(renewal, {.time = seconds(1)});
    }
  }
  {
    auto idle = machine;
    const Timed timed("leases: 100,000 without a lock expire at one tick", count);
    idle.apply(Tick{}, {.time = seconds(100)});
  }
  for (std::uint64_t i = 1; i <= count; ++i) {
    acquire(machine, i, 1, name("lock " + std::to_string(i)));
  }
  std::string bytes;
  {
    const Timed timed("snapshot: 100,000 leases with a lock each, encoded", count);
    bytes = encode(machine.state());
  }
  {
    const Timed timed("snapshot: the same decoded and checked", count);
    if (!decode(bytes)) {
      std::puts("the snapshot was refused");
    }
  }
  const Timed timed("leases: 100,000 with a lock each expire at one tick", count);
  machine.apply(Tick{}, {.time = seconds(100)});
}

}  // namespace
}  // namespace tenure::core

int main() {
  tenure::core::many_held("1,000,000 locks held, 64 by each request", 64);
  tenure::core::many_held("1,000,000 locks held, one by each request", 1);
  tenure::core::points();
  tenure::core::points_with_histories();
  tenure::core::ranges();
  tenure::core::waiting_ranges();
  tenure::core::queue();
  tenure::core::holders_in_queues();
  tenure::core::permits();
  tenure::core::leases();
}
