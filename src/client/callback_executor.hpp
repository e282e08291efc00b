#pragma once

#include <functional>
#include <memory>
#include <thread>

namespace tenure::detail {

/// Single-thread executor that runs all user code of a client: callbacks, stop callbacks of lost(),
/// coroutines. No mutex or latch of the library is held while a job runs. The thread starts with
/// the first job. Thread safe.
class CallbackExecutor {
 public:
  using Job = std::move_only_function<void()>;

  CallbackExecutor();
  CallbackExecutor(const CallbackExecutor&) = delete;
  CallbackExecutor& operator=(const CallbackExecutor&) = delete;
  /// Runs the queued jobs and ends the thread. If it is called on that thread, because a job
  /// dropped the last handle of the client, the thread ends after the current job and the others
  /// are dropped.
  void close();
  ~CallbackExecutor() { close(); }

  /// Queues a job; drops it after close(). Never blocks on a job. If the system has no thread left,
  /// the job runs after a later post().
  void post(Job job);

 private:
  /// Jobs and thread. Owned by the executor and by its thread, which may outlive the executor if it
  /// runs close() itself.
  struct Queue;
  /// Main function of the thread: runs jobs in order until the queue is closed and empty.
  static void run(const std::shared_ptr<Queue>& queue);

  std::shared_ptr<Queue> queue_;
};

}  // namespace tenure::detail
