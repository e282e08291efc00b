#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <utility>

#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

namespace tenure::server {

/// Low-priority queue of handlers on the thread of an io_context. Its handlers run in slices of
/// limited time; between two slices run the handlers of the io_context itself that have become
/// ready. So those wait for one slice and one handler at most, however much is queued here.
class TimeSlices {
 public:
  using Clock = std::chrono::steady_clock;

  /// Meets the requirements of asio::any_io_executor. Thread safe. REQUIRES: the TimeSlices outlive
  /// it.
  class Executor {
   public:
    explicit Executor(TimeSlices& slices) noexcept : slices_(&slices) {}

    template <class Function>
    void execute(Function function) const {
      slices_->push(std::move(function));
    }
    [[nodiscard]] boost::asio::io_context& query(
        boost::asio::execution::context_t /*property*/) const noexcept {
      return slices_->loop_;
    }
    [[nodiscard]] static constexpr boost::asio::execution::blocking_t query(
        boost::asio::execution::blocking_t /*property*/) noexcept {
      return boost::asio::execution::blocking.never;
    }
    [[nodiscard]] Executor require(
        boost::asio::execution::blocking_t::never_t /*property*/) const noexcept {
      return *this;
    }
    friend bool operator==(const Executor&, const Executor&) noexcept = default;

   private:
    TimeSlices* slices_;
  };

  TimeSlices(boost::asio::io_context& loop, std::chrono::microseconds slice)
      : loop_(loop), slice_(slice) {}
  TimeSlices(const TimeSlices&) = delete;
  TimeSlices& operator=(const TimeSlices&) = delete;

  [[nodiscard]] Executor executor() noexcept { return Executor(*this); }

 private:
  using Task = std::move_only_function<void()>;

  void push(Task task) {
    if (!loop_.get_executor().running_in_this_thread()) {
      boost::asio::post(loop_, [this, task = std::move(task)]() mutable { push(std::move(task)); });
      return;
    }
    queue_.push_back(std::move(task));
    if (queue_.size() == 1 && !is_running_) {
      run_soon();
    }
  }

  void run_soon() {
    boost::asio::post(loop_, [this] { run_slice(); });
  }

  void run_slice() {
    is_running_ = true;
    const auto end = Clock::now() + slice_;
    do {
      auto task = std::move(queue_.front());
      queue_.pop_front();
      task();
    } while (!queue_.empty() && Clock::now() < end);
    is_running_ = false;
    if (!queue_.empty()) {
      run_soon();
    }
  }

  boost::asio::io_context& loop_;
  const std::chrono::microseconds slice_;
  std::deque<Task> queue_;
  bool is_running_ = false;
};

}  // namespace tenure::server
