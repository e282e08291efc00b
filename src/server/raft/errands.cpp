#include "server/raft/errands.hpp"

#include <utility>

namespace tenure::server::raft {

Errands::~Errands() {
  const sys::MutexGuard guard(mutex_);
  is_stopping_ = true;
  changed_.notify_one();
}

void Errands::add(std::move_only_function<void()> errand) {
  {
    const sys::MutexGuard guard(mutex_);
    waiting_.push_back(std::move(errand));
    changed_.notify_one();
  }
  if (!thread_.joinable()) {
    thread_ = std::jthread([this] { run(); });
  }
}

void Errands::run() {
  mutex_.lock();
  while (!is_stopping_) {
    if (waiting_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    auto errand = std::move(waiting_.front());
    waiting_.pop_front();
    mutex_.unlock();
    errand();
    errand = nullptr;
    mutex_.lock();
  }
  mutex_.unlock();
}

}  // namespace tenure::server::raft
