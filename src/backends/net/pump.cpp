#include "backends/net/pump.hpp"

#include <chrono>

namespace tenure::backends {
namespace {

/// When no guest came for so long, our own thread runs the loop. Until then nobody hears what the
/// server says unasked.
constexpr std::chrono::milliseconds own_after{2};
/// For so long who waits for an answer stays awake: a round trip and a write to a quick disk.
constexpr std::chrono::microseconds awake_for{400};

}  // namespace

Pump::Pump() : work_(loop_.get_executor()), vigil_(awake_for), thread_([this] { run_own(); }) {}

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
  }
  loop_.poll();
  leave();
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
    leave();
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

void Pump::leave() {
  for (;;) {
    {
      const sys::MutexGuard lock(mutex_);
      if (!std::exchange(is_nudged_, false)) {
        ++turns_;
        if (auto* next = sleepers_.first()) {
          sleepers_.remove(*next);
          runner_ = Runner::guest;
          appoint(*next);
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

void Pump::appoint(Nap& nap) {
  // While we have the mutex it cannot have gone.
  nap.appoint();
  nap.unpark();
}

void Pump::run_own() {
  mutex_.lock();
  auto seen = turns_;
  while (!is_stopping_) {
    if (turns_ == seen && runner_ == Runner::nobody && !idlers_.empty()) {
      auto& idler = *idlers_.first();
      idlers_.remove(idler);
      runner_ = Runner::idler;
      is_wanted_ = false;
      appoint(idler);
    } else if (turns_ == seen && runner_ == Runner::nobody) {
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

}  // namespace tenure::backends
