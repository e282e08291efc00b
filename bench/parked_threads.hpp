#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include <pthread.h>

namespace tenure::bench {

/// Thousands of threads with small stacks, for peers whose waiters must each be a thread; joined
/// by the destructor. REQUIRES: their waits end before that.
class ParkedThreads {
 public:
  ParkedThreads(std::size_t count, std::function<void(std::size_t)> body) : body_(std::move(body)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    starts_.reserve(count);
    for (std::size_t number = 0; number < count; ++number) {
      starts_.push_back({.threads = this, .number = number});
      pthread_t thread{};
      if (pthread_create(&thread, &attributes, &ParkedThreads::enter, &starts_.back()) != 0) {
        std::fprintf(stderr, "cannot start thread %zu of %zu\n", number, count);
        std::abort();
      }
      threads_.push_back(thread);
    }
    pthread_attr_destroy(&attributes);
  }
  ParkedThreads(const ParkedThreads&) = delete;
  ParkedThreads& operator=(const ParkedThreads&) = delete;
  ~ParkedThreads() {
    for (const pthread_t thread : threads_) {
      pthread_join(thread, nullptr);
    }
  }

 private:
  static constexpr std::size_t stack_bytes = 128 * 1024;

  struct Start {
    ParkedThreads* threads;
    std::size_t number;
  };

  static void* enter(void* start) {
    const auto* own = static_cast<const Start*>(start);
    own->threads->body_(own->number);
    return nullptr;
  }

  std::function<void(std::size_t)> body_;
  std::vector<Start> starts_;  ///< Never grows beyond what was reserved: threads point into it.
  std::vector<pthread_t> threads_;
};

}  // namespace tenure::bench
