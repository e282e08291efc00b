// Two transactions acquire two locks in opposite order. The wait that closes the cycle is detected
// at once, one transaction fails and is retried, and both complete. No timeout is involved.

#include <barrier>
#include <string>
#include <string_view>
#include <thread>

#include <tenure/tenure.hpp>

#include "check.hpp"

using tenure::Errc;
using tenure::LockManager;
using tenure::LockMode;
using tenure::ResourceId;
using tenure::TxnId;

namespace {

struct Order {
  std::string_view first;
  std::string_view second;
};

/// Acquires both locks and retries after each deadlock. Returns the number of retries.
/// `both_hold_one` is passed when the first lock is held.
int take_both(const tenure::Transaction& txn, const Order& order, std::barrier<>& both_hold_one) {
  txn.lock(order.first, LockMode::exclusive).or_throw();
  both_hold_one.arrive_and_wait();

  int gave_way = 0;
  auto done = txn.lock(order.second, LockMode::exclusive);
  while (!done) {
    check(done.error() == Errc::deadlock, "a transaction fails: deadlock");
    ++gave_way;
    txn.restart();  // lets go of everything and keeps its age, so that it does not lose for ever
    done = txn.lock(order.first, LockMode::exclusive);
    if (done) {
      done = txn.lock(order.second, LockMode::exclusive);
    }
  }
  txn.unlock_all();
  return gave_way;
}

void with_threads() {
  const LockManager locks;
  const auto older = locks.begin({.id = TxnId{1}});
  const auto younger = locks.begin({.id = TxnId{2}});
  std::barrier both_hold_one(2);
  int older_gave_way = 0;
  int younger_gave_way = 0;
  {
    const std::jthread first(
        [&] { older_gave_way = take_both(older, {.first = "a", .second = "b"}, both_hold_one); });
    const std::jthread second([&] {
      younger_gave_way = take_both(younger, {.first = "b", .second = "a"}, both_hold_one);
    });
  }

  check(older_gave_way == 0 && younger_gave_way == 1,
        "both are done; the younger one failed once, the older one never");
  const auto reports = locks.recent_deadlocks();
  check(reports.size() == 1 && reports[0].deadlock.victim == TxnId{2},
        "the lock manager has a report: " + to_string(reports.at(0)));
}

/// For an engine with its own scheduler: request() never blocks the thread.
void without_threads() {
  const LockManager locks;
  constexpr ResourceId a{1};
  constexpr ResourceId b{2};
  constexpr TxnId older{1};
  constexpr TxnId younger{2};

  check(locks.request(older, a, LockMode::exclusive).is_granted(), "request: 1 holds a");
  check(locks.request(younger, b, LockMode::exclusive).is_granted(), "request: 2 holds b");
  check(locks.request(older, b, LockMode::exclusive).is_waiting(), "request: 1 waits for b");

  const auto answer = locks.request(younger, a, LockMode::exclusive);
  const auto* deadlock = answer.deadlock();
  check(deadlock != nullptr && deadlock->victim == younger && deadlock->cycle.size() == 2,
        "request: 2 requests a, which closes a cycle of two; 2 is the victim");

  locks.release_all(younger);
  check(locks.request(older, b, LockMode::exclusive).is_granted(),
        "request: 2 releases everything, 1 holds b");
}

}  // namespace

int main() {
  with_threads();
  without_threads();
}
