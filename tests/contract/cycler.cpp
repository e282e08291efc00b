// A process that locks and unlocks for a while, holds one lock all the time, and watches; then it
// prints what it observed. The starting test injects the server faults.
//
//   tenure_cycler URL SECONDS

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tenure/client/client.hpp>

using Clock = std::chrono::steady_clock;

namespace {

struct Seen {
  long cycles = 0;
  long errors = 0;
  long backwards = 0;  // tokens that did not grow
  long gaps = 0;       // events that did not come, or came twice
  std::string problem = "-";
  std::chrono::milliseconds longest{};
};

// Every cycle is two events, in order.
void count_events(tenure::Watch& watch, Seen& seen) {
  tenure::Revision last{};
  for (long n = 0; n < 2 * seen.cycles; ++n) {
    const auto event = watch.next_for(std::chrono::seconds(10));
    const auto expected =
        n % 2 == 0 ? tenure::LockEventType::granted : tenure::LockEventType::released;
    if (!event || event->type != expected || event->revision <= last) {
      ++seen.gaps;
      seen.problem = event ? "an event out of order" : tenure::to_string(event.error());
      return;
    }
    last = event->revision;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    return 64;
  }
  const auto client = tenure::connect(arguments[1]);
  if (!client) {
    std::fprintf(stderr, "%s\n", tenure::to_string(client.error()).c_str());
    return 1;
  }
  auto watch = client->watch("cycler/cycle", {.events_max = 10'000'000});
  auto kept = client->mutex("cycler/kept").lock();
  if (!watch || !kept) {
    return 1;
  }
  std::puts("running");
  std::fflush(stdout);
  Seen seen;
  tenure::FencingToken last{};
  const auto mutex = client->mutex("cycler/cycle");
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(arguments[2]));
  while (Clock::now() < end) {
    const auto began = Clock::now();
    auto held = mutex.lock();
    const auto token = held ? held->token() : tenure::FencingToken{};
    const auto unlocked = held ? held->unlock() : tenure::Result<void>{};
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
    seen.longest = std::max(seen.longest, took);
    if (!held || !unlocked) {
      ++seen.errors;
      seen.problem = tenure::to_string(held ? unlocked.error() : held.error());
      continue;
    }
    ++seen.cycles;
    seen.backwards += token > last ? 0 : 1;
    last = token;
  }
  const bool is_kept = kept->owns_lock() && kept->unlock();
  if (seen.errors == 0) {
    count_events(*watch, seen);
  }
  std::printf("cycles=%ld errors=%ld backwards=%ld gaps=%ld kept=%d longest_ms=%lld problem=%s\n",
              seen.cycles, seen.errors, seen.backwards, seen.gaps, is_kept ? 1 : 0,
              static_cast<long long>(seen.longest.count()), seen.problem.c_str());
  return 0;
}
