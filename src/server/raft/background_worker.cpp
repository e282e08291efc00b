#include "server/raft/background_worker.hpp"

#include <utility>

namespace tenure::server::raft {

BackgroundWorker::~BackgroundWorker() {
  // The member `thread_` joins in its own destructor, which runs after this one.
  const sys::MutexGuard guard(mutex_);
  is_stopping_ = true;
  changed_.notify_one();
}

void BackgroundWorker::add(std::move_only_function<void()> task) {
  {
    const sys::MutexGuard guard(mutex_);
    waiting_.push_back(std::move(task));
    changed_.notify_one();
  }
  // No race: only the one thread that calls add() starts the worker.
  if (!thread_.joinable()) {
    thread_ = std::jthread([this] { run(); });
  }
}

void BackgroundWorker::run() {
  mutex_.lock();
  while (!is_stopping_) {
    if (waiting_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    auto task = std::move(waiting_.front());
    waiting_.pop_front();
    mutex_.unlock();
    task();
    // Destroys the captures without the mutex: they may own a large state.
    task = nullptr;
    mutex_.lock();
  }
  mutex_.unlock();
}

}  // namespace tenure::server::raft
