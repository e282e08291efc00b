#include "backends/net/pump.hpp"

#include <chrono>
#include <cstddef>

namespace tenure::backends {
namespace {

/// When no guest came for so long, our own thread runs the loop. Until then nobody hears what the
/// server says unasked.
constexpr std::chrono::milliseconds own_after{2};
/// So many jobs of others are done by one who only came to post one, or who is about to go. Then
/// somebody else goes on, or a busy client would keep it for as long as it is busy.
constexpr std::size_t favours_max = 256;

}  // namespace

Pump::Pump(std::chrono::microseconds awake_for)
    : work_(loop_.get_executor()), vigil_(awake_for), thread_([this] { run_own(); }) {}

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
  // One that sleeps for work will be back soon: what it posts until then leaves together.
  if (!runs_here() && idler_.load() != std::this_thread::get_id()) {
    hurry();
  }
}

void Pump::hurry() {
  {
    const sys::MutexGuard lock(mutex_);
    if (runner_ != Runner::nobody) {
      is_nudged_ = true;
      return;
    }
    runner_ = Runner::guest;
    has_left_overs_ = false;
  }
  auto favours = favours_max;
  do_favours(favours);
  leave(favours);
}

void Pump::do_favours(std::size_t& left) {
  while (left > 0 && loop_.poll_one() > 0) {
    --left;
  }
}

void Pump::sleep(Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline, SleepFor what) {
  const bool is_idle = what == SleepFor::work;
  bool runs = false;
  bool is_one_in_the_way = false;
  if (is_idle) {
    idler_ = std::this_thread::get_id();
  }
  {
    const sys::MutexGuard lock(mutex_);
    if (runner_ == Runner::nobody) {
      runner_ = is_idle ? Runner::idler : Runner::guest;
      is_wanted_ = false;
      has_left_overs_ = false;
      runs = true;
    } else {
      const bool gives_way = runner_ == Runner::own || (runner_ == Runner::idler && !is_idle);
      is_one_in_the_way = gives_way && !is_wanted_.exchange(true);
      (is_idle ? idlers_ : sleepers_).push_back(nap);
    }
  }
  if (is_one_in_the_way) {
    boost::asio::post(loop_, [] {});
  }
  if (!runs) {
    nap.park(calls_seen, deadline);
    const sys::MutexGuard lock(mutex_);
    runs = nap.take_appointment();
    if (!runs) {
      (is_idle ? idlers_ : sleepers_).remove(nap);
    }
  }
  if (runs) {
    run_for(nap, calls_seen, deadline, what);
    leave(favours_max);
  }
}

void Pump::run_for(const Nap& nap, std::uint32_t calls_seen, Nap::Deadline deadline,
                   SleepFor what) {
  running_ = &nap;
  const auto may_go = [&] {
    return nap.calls() != calls_seen || (what == SleepFor::work && is_wanted_) ||
           (deadline && std::chrono::steady_clock::now() >= *deadline);
  };
  const auto look = [&] { return loop_.poll_one() > 0 || may_go(); };
  while (!may_go()) {
    if (look() || vigil_.keep(look)) {
      continue;
    }
    if (deadline) {
      loop_.run_one_until(*deadline);
    } else {
      loop_.run_one();
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

void Pump::leave(std::size_t favours) {
  for (;;) {
    {
      const sys::MutexGuard lock(mutex_);
      if (!std::exchange(is_nudged_, false) || favours == 0) {
        ++turns_;
        if (auto* next = sleepers_.first()) {
          sleepers_.remove(*next);
          runner_ = Runner::guest;
          is_nudged_ = favours == 0;  // It may go at once, and looks here first.
          appoint(*next);
          return;
        }
        runner_ = Runner::nobody;
        has_left_overs_ = favours == 0;
        if (is_own_asleep_ || has_left_overs_) {
          own_.notify_one();
        }
        return;
      }
    }
    do_favours(favours);
  }
}

void Pump::appoint(Nap& nap) {
  // While we have the mutex it cannot have gone.
  nap.appoint();
  nap.unpark();
}

void Pump::run_own() {
  mutex_.lock();
  auto seen = turns_;
  while (!is_stopping_) {
    const bool is_due = (turns_ == seen || has_left_overs_) && runner_ == Runner::nobody;
    has_left_overs_ = has_left_overs_ && !is_due;
    if (is_due && !idlers_.empty()) {
      auto& idler = *idlers_.first();
      idlers_.remove(idler);
      runner_ = Runner::idler;
      is_wanted_ = false;
      appoint(idler);
    } else if (is_due) {
      runner_ = Runner::own;
      is_wanted_ = false;
      mutex_.unlock();
      while (!is_wanted_) {
        loop_.run_one();
      }
      leave(favours_max);
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
    if (!has_left_overs_) {
      own_.wait_for(mutex_, own_after);
    }
  }
  mutex_.unlock();
}

}  // namespace tenure::backends
