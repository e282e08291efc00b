#include "client/callback_executor.hpp"

#include <deque>
#include <system_error>
#include <utility>

#include "sys/mutex.hpp"

namespace tenure::detail {

struct CallbackExecutor::Queue {
  sys::Mutex mutex;
  std::deque<Job> jobs TENURE_GUARDED_BY(mutex);
  bool is_ending TENURE_GUARDED_BY(mutex) = false;
  sys::Signal changed;
  std::thread thread TENURE_GUARDED_BY(mutex);
};

CallbackExecutor::CallbackExecutor() : queue_(std::make_shared<Queue>()) {}

void CallbackExecutor::close() {
  std::thread thread;
  // Destroyed at the end, without the mutex: the destructors of jobs may run arbitrary code.
  std::deque<Job> left;
  {
    const sys::MutexGuard lock(queue_->mutex);
    queue_->is_ending = true;
    thread = std::move(queue_->thread);
    if (thread.get_id() == std::this_thread::get_id()) {
      // The client is gone, so its remaining callbacks have no recipient.
      left = std::exchange(queue_->jobs, {});
    }
  }
  if (!thread.joinable()) {
    return;
  }
  if (thread.get_id() == std::this_thread::get_id()) {
    // A thread cannot join itself. It holds a reference to the queue and ends after this job.
    thread.detach();
  } else {
    queue_->changed.notify_one();
    thread.join();
  }
}

void CallbackExecutor::post(Job job) {
  {
    const sys::MutexGuard lock(queue_->mutex);
    if (queue_->is_ending) {
      return;
    }
    queue_->jobs.push_back(std::move(job));
    if (!queue_->thread.joinable()) {
      try {
        queue_->thread = std::thread([queue = queue_] { run(queue); });
      } catch (const std::system_error&) {
        return;  // No thread available. The job stays queued; the next post() tries again.
      }
    }
  }
  queue_->changed.notify_one();
}

void CallbackExecutor::run(const std::shared_ptr<Queue>& queue) {
  for (;;) {
    Job job;
    {
      const sys::MutexGuard lock(queue->mutex);
      while (queue->jobs.empty() && !queue->is_ending) {
        queue->changed.wait(queue->mutex);
      }
      if (queue->jobs.empty()) {
        return;
      }
      job = std::move(queue->jobs.front());
      queue->jobs.pop_front();
    }
    // Without the mutex: user code may post further jobs, or take any time.
    job();
  }
}

}  // namespace tenure::detail
