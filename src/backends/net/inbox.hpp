#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace tenure::backends {

/// Jobs that any thread puts in and one takes out. Nobody waits for anybody: under a mutex, threads
/// by the dozen that lose their core while they have it would hand it on by the kernel, each time.
class Inbox {
 public:
  class Job {
   public:
    Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    virtual ~Job() = default;
    virtual void run() = 0;

   private:
    friend class Inbox;
    Job* next_ = nullptr;
  };

  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  ~Inbox() {
    run_each([](Job&) {});
  }

  /// How many there are then. Of those who add one each gets another number; if some are just about
  /// to, the last of them gets the right one.
  template <class Work>
  std::int64_t add(Work work) {
    auto* const job = std::make_unique<Done<Work>>(std::move(work)).release();
    job->next_ = last_.load(std::memory_order_relaxed);
    while (!last_.compare_exchange_weak(job->next_, job)) {
    }
    return ++size_;
  }
  [[nodiscard]] std::int64_t size() const noexcept { return size_.load(); }

  /// Takes out all that there is and does it, in order. What is put in meanwhile stays.
  void run_all() {
    run_each([](Job& job) { job.run(); });
  }

 private:
  template <class Work>
  class Done final : public Job {
   public:
    explicit Done(Work work) : work_(std::move(work)) {}
    void run() override { work_(); }

   private:
    Work work_;
  };

  template <class Use>
  void run_each(Use use) {
    Job* rest = nullptr;
    std::int64_t taken = 0;
    for (auto* job = last_.exchange(nullptr); job != nullptr; ++taken) {
      auto* const before = std::exchange(job->next_, rest);
      rest = std::exchange(job, before);
    }
    size_ -= taken;
    while (rest != nullptr) {
      const std::unique_ptr<Job> job(rest);
      rest = job->next_;
      use(*job);
    }
  }

  std::atomic<Job*> last_ = nullptr;    ///< Then the one before it, and so on.
  std::atomic<std::int64_t> size_ = 0;  ///< Less, while one that is taken out is not counted yet.
};

}  // namespace tenure::backends
