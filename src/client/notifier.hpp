#pragma once

#include <functional>
#include <memory>
#include <thread>

namespace tenure::detail {

/// The thread on which a client calls its user: callbacks, lost(), coroutines. It starts with the
/// first thing to do. Thread safe.
class Notifier {
 public:
  using Job = std::move_only_function<void()>;

  Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  /// Does what is queued, and ends the thread. On that very thread, where a user may let go of the
  /// last handle, the thread ends when it comes back from the job it is in, and does no other.
  void close();
  ~Notifier() { close(); }

  /// After close(): the job is dropped.
  void post(Job job);

 private:
  struct Queue;
  static void run(const std::shared_ptr<Queue>& queue);

  std::shared_ptr<Queue> queue_;
};

}  // namespace tenure::detail
