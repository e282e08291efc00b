#include "backends/cluster/pump.hpp"

#include <chrono>

namespace tenure::backends::cluster {
namespace {

/// When no guest came for so long, our own thread runs the loop. Until then nobody hears what the
/// server says unasked.
constexpr std::chrono::milliseconds own_after{2};

}  // namespace

Pump::Pump() : work_(loop_.get_executor()), thread_([this] { run_own(); }) {}

void Pump::stop() {
  if (!thread_.joinable()) {
    return;
  }
  {
    const sys::MutexGuard lock(mutex_);
    is_stopping_ = true;
    is_wanted_ = true;
  }
  own_.notify_one();
  boost::asio::post(loop_, [] {});
  thread_.join();
}

void Pump::nudge() {
  if (runs_here()) {
    return;
  }
  {
    const sys::MutexGuard lock(mutex_);
    if (runner_ != Runner::nobody) {
      is_nudged_ = true;
      return;
    }
    runner_ = Runner::guest;
  }
  loop_.poll();
  leave();
}

void Pump::sleep(Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline) {
  bool runs = false;
  bool is_own_in_the_way = false;
  {
    const sys::MutexGuard lock(mutex_);
    if (runner_ == Runner::nobody) {
      runner_ = Runner::guest;
      runs = true;
    } else {
      is_own_in_the_way = runner_ == Runner::own && !is_wanted_.exchange(true);
      sleepers_.push_back(nap);
    }
  }
  if (is_own_in_the_way) {
    boost::asio::post(loop_, [] {});
  }
  if (!runs) {
    nap.park(calls_seen, deadline);
    const sys::MutexGuard lock(mutex_);
    runs = nap.take_appointment();
    if (!runs) {
      sleepers_.remove(nap);
    }
  }
  if (runs) {
    run_for(nap, calls_seen, deadline);
    leave();
  }
}

void Pump::run_for(const Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline) {
  running_ = &nap;
  while (nap.calls() == calls_seen) {
    if (!deadline) {
      loop_.run_one();
    } else if (loop_.run_one_until(*deadline) == 0) {
      break;
    }
  }
  running_ = nullptr;
}

void Pump::wake(Nap& nap) {
  nap.add_call();
  if (running_.load() != &nap) {
    nap.unpark();
  } else if (!runs_here()) {
    boost::asio::post(loop_, [] {});
  }
}

void Pump::leave() {
  for (;;) {
    {
      const sys::MutexGuard lock(mutex_);
      if (!std::exchange(is_nudged_, false)) {
        ++turns_;
        if (auto* next = sleepers_.first()) {
          sleepers_.remove(*next);
          runner_ = Runner::guest;
          // While we have the mutex it cannot have gone.
          next->appoint();
          next->unpark();
          return;
        }
        runner_ = Runner::nobody;
        if (is_own_asleep_) {
          own_.notify_one();
        }
        return;
      }
    }
    loop_.poll();
  }
}

void Pump::run_own() {
  mutex_.lock();
  auto seen = turns_;
  while (!is_stopping_) {
    if (turns_ == seen && runner_ == Runner::nobody) {
      runner_ = Runner::own;
      is_wanted_ = false;
      mutex_.unlock();
      while (!is_wanted_) {
        loop_.run_one();
      }
      leave();
      mutex_.lock();
      seen = turns_;
      continue;
    }
    if (turns_ == seen) {
      // A guest that stays. It tells us when it goes, so that we need not look.
      is_own_asleep_ = true;
      own_.wait(mutex_);
      is_own_asleep_ = false;
    }
    seen = turns_;
    own_.wait_for(mutex_, own_after);
  }
  mutex_.unlock();
}

}  // namespace tenure::backends::cluster
