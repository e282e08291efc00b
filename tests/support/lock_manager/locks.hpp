#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/tenure.hpp>

#include "support/wait_until.hpp"

/// Constants, matchers and threads for the tests of the lock manager.
namespace tenure::test {

using enum LockMode;

/// Transactions, oldest first, and things to lock.
inline constexpr TxnId t1{1};
inline constexpr TxnId t2{2};
inline constexpr TxnId t3{3};
inline constexpr TxnId t4{4};
inline constexpr TxnId t5{5};
inline constexpr ResourceId row_a{101};
inline constexpr ResourceId row_b{102};
inline constexpr ResourceId row_c{103};
inline constexpr ResourceId space_a{201};
inline constexpr ResourceId space_b{202};

/// The keys [start, end] of a space.
[[nodiscard]] inline KeysOf keys(ResourceId space, std::uint64_t start, std::uint64_t end) {
  return {.space = space, .range = KeyRange::of(start, end).value()};
}

/// True if the call succeeded; otherwise the test prints the error.
template <class Value>
[[nodiscard]] testing::AssertionResult succeeded(const Result<Value>& result) {
  if (result.has_value()) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << to_string(result.error());
}

/// True if the call failed with `code`; otherwise the test prints what happened instead.
template <class Value>
[[nodiscard]] testing::AssertionResult refused(const Result<Value>& result, Errc code) {
  if (result.has_value()) {
    return testing::AssertionFailure() << "succeeded instead of " << to_string(code);
  }
  if (result.error().code != code) {
    return testing::AssertionFailure()
           << to_string(result.error()) << " instead of " << to_string(code);
  }
  return testing::AssertionSuccess();
}

/// True if the request was refused with `code`: a limit or a bad argument.
[[nodiscard]] inline testing::AssertionResult refused(const RequestResult& answer, Errc code) {
  if (answer.error() == nullptr) {
    return testing::AssertionFailure() << "no error instead of " << to_string(code);
  }
  return refused(Result<void>(std::unexpected(*answer.error())), code);
}

/// Options of a wait that outlasts every test that works, and ends one that hangs.
[[nodiscard]] inline WaitOptions with_test_timeout() {
  return within(test_timeout);
}

/// Runs a call that may park in a thread of its own.
template <class Call>
[[nodiscard]] auto in_background(Call call) {
  return std::async(std::launch::async, std::move(call));
}

/// acquire() in a thread of its own.
[[nodiscard]] inline std::future<Result<void>> acquire_in_background(const LockManager& locks,
                                                                     TxnId txn, Target target,
                                                                     LockMode mode) {
  return in_background(
      [locks, txn, target, mode] { return locks.acquire(txn, target, mode, with_test_timeout()); });
}

/// Number of all waits, also several of one transaction.
[[nodiscard]] inline std::size_t wait_total(const LockManager& locks) {
  std::size_t total = 0;
  for (const LockView& lock : locks.snapshot().locks) {
    total += lock.waiters.size();
  }
  return total;
}

/// Waits until `wanted` waits stand in the queues.
[[nodiscard]] inline bool eventually_waiting(const LockManager& locks, std::size_t wanted) {
  return eventually([&] { return wait_total(locks) == wanted; });
}

/// Whether `cycle` equals `wanted` up to rotation.
[[nodiscard]] inline bool is_cycle(std::vector<TxnId> cycle, const std::vector<TxnId>& wanted) {
  const auto first = std::ranges::find(cycle, wanted.front());
  std::ranges::rotate(cycle, first);
  return cycle == wanted;
}

/// True if `answer` is a deadlock with this victim.
[[nodiscard]] inline testing::AssertionResult gives_way(const RequestResult& answer, TxnId victim) {
  if (answer.deadlock() == nullptr) {
    return testing::AssertionFailure() << "no deadlock";
  }
  if (answer.deadlock()->victim != victim) {
    return testing::AssertionFailure() << "the victim is " << answer.deadlock()->victim.get();
  }
  return testing::AssertionSuccess();
}

/// `older` holds row A, `younger` row B; `younger` waits for A. Returns the answer to `older`
/// when it closes the cycle by requesting B.
[[nodiscard]] inline RequestResult close_cycle(const LockManager& locks, TxnId older = t1,
                                               TxnId younger = t2) {
  locks.try_acquire(older, row_a, exclusive).value();
  locks.try_acquire(younger, row_b, exclusive).value();
  EXPECT_TRUE(locks.request(younger, row_a, exclusive).is_waiting());
  return locks.request(older, row_b, exclusive);
}

}  // namespace tenure::test
