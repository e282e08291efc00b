#include "server/raft/background_worker.hpp"

#include <utility>

namespace tenure::server::raft {

BackgroundWorker::~BackgroundWorker() {
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
    task = nullptr;
    mutex_.lock();
  }
  mutex_.unlock();
}

}  // namespace tenure::server::raft
