#include "sys/fork.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include <pthread.h>
#include <unistd.h>

namespace tenure::sys {

std::atomic<std::uint32_t> ForkEpoch::current_ = 0;

void advance_in_child() noexcept {
  ForkEpoch::current_.fetch_add(1, std::memory_order_relaxed);
}

namespace {

/// Descriptors that a child closes. A std::mutex, because clang's thread safety analysis cannot
/// follow a mutex that one fork() handler locks and another one unlocks.
struct Descriptors {
  std::mutex mutex;
  std::multiset<int> numbers;  ///< Guarded by mutex.
};

/// Never destroyed: fork() may be called while the process ends.
Descriptors& descriptors() {
  static auto& all = *std::make_unique<Descriptors>().release();
  return all;
}

void before_fork() {
  descriptors().mutex.lock();
}

void after_fork_in_parent() {
  descriptors().mutex.unlock();
}

void after_fork_in_child() {
  advance_in_child();
  auto& all = descriptors();
  for (const int number : std::exchange(all.numbers, {})) {
    ::close(number);
  }
  all.mutex.unlock();
}

}  // namespace

void watch_forks() {
  static const int registered =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(registered);
}

ClosedInChild::ClosedInChild(int descriptor) : ClosedInChild([descriptor] { return descriptor; }) {}

ClosedInChild::ClosedInChild(const std::function<int()>& open) {
  watch_forks();
  auto& all = descriptors();
  const std::scoped_lock lock(all.mutex);
  descriptor_ = open();
  if (descriptor_ >= 0) {
    all.numbers.insert(descriptor_);
  }
}

void ClosedInChild::reset() noexcept {
  if (descriptor_ < 0) {
    return;
  }
  auto& all = descriptors();
  const std::scoped_lock lock(all.mutex);
  if (const auto it = all.numbers.find(std::exchange(descriptor_, -1)); it != all.numbers.end()) {
    all.numbers.erase(it);
  }
}

}  // namespace tenure::sys
