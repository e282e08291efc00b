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
/// When one who runs the loop has woken so many others, they are a crowd.
constexpr std::uint32_t crowd_min = 8;
/// And stay one while so many are woken in each such time.
constexpr std::chrono::milliseconds crowd_look{2};
/// So often one lets others go first before it sleeps.
constexpr int doze_turns = 8;
/// If that takes longer, others want the core for more than a moment.
constexpr std::chrono::milliseconds doze_max{1};

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
  bool may_doze = false;
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
      const bool gives_way =
          (runner_ == Runner::own && !is_crowded_) || (runner_ == Runner::idler && !is_idle);
      is_one_in_the_way = gives_way && !is_wanted_.exchange(true);
      (is_idle ? idlers_ : sleepers_).push_back(nap);
      may_doze = !is_idle && dozing_.is_on();
    }
  }
  if (is_one_in_the_way) {
    boost::asio::post(loop_, [] {});
  }
  if (!runs) {
    const auto dozed = may_doze ? doze(nap, calls_seen) : Dozed::not_at_all;
    if (dozed != Dozed::well) {
      nap.park(calls_seen, deadline);
    }
    const sys::MutexGuard lock(mutex_);
    if (dozed == Dozed::well) {
      dozing_.won();
    } else if (dozed != Dozed::not_at_all) {
      dozing_.lost(dozed == Dozed::too_long ? 2 : 1);
    }
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

/// Where threads want the cores in turn, each for a moment, to let the others go first takes less
/// than to sleep and to be woken: the answer is there when it is our turn again.
Pump::Dozed Pump::doze(const Nap& nap, std::uint32_t calls_seen) {
  const auto began = std::chrono::steady_clock::now();
  for (int turn = 0; turn < doze_turns && !nap.is_roused(calls_seen); ++turn) {
    sys::let_others();
  }
  if (nap.is_roused(calls_seen)) {
    return Dozed::well;
  }
  const auto took = std::chrono::steady_clock::now() - began;
  return took > doze_max ? Dozed::too_long : Dozed::in_vain;
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
  const bool is_asleep = nap.add_call();
  if (running_.load() == &nap) {
    if (!runs_here()) {
      boost::asio::post(loop_, [] {});
    }
    return;
  }
  if (is_asleep) {
    nap.unpark();
  }
  if (runs_here()) {
    ++woken_;
  }
}

void Pump::leave(std::size_t favours) {
  const bool is_crowd = std::exchange(woken_, 0) >= crowd_min;
  for (;;) {
    {
      const sys::MutexGuard lock(mutex_);
      if (is_crowd && !sleepers_.empty() && !is_stopping_) {
        ++turns_;
        runner_ = Runner::own;
        is_crowded_ = true;
        is_wanted_ = false;
        own_.notify_one();
        return;
      }
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
}

/// Many are answered together, again and again: whoever of them would run the loop next would have
/// to wait for a core among all the others that were just woken, and they all for it.
void Pump::serve_crowd() {
  do {
    woken_ = 0;
    const auto end = std::chrono::steady_clock::now() + crowd_look;
    while (std::chrono::steady_clock::now() < end) {
      loop_.run_one_until(end);
    }
  } while (woken_ >= crowd_min);
}

/// Our thread, until a guest wants to.
void Pump::run_until_wanted() {
  while (!is_wanted_) {
    loop_.run_one();
  }
  leave(favours_max);
}

void Pump::run_own() {
  mutex_.lock();
  auto seen = turns_;
  while (!is_stopping_) {
    if (is_crowded_) {
      mutex_.unlock();
      serve_crowd();
      mutex_.lock();
      is_crowded_ = false;
      mutex_.unlock();
      run_until_wanted();
      mutex_.lock();
      seen = turns_;
      continue;
    }
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
      run_until_wanted();
      mutex_.lock();
      seen = turns_;
      continue;
    }
    if (turns_ == seen && !is_crowded_) {
      // A guest that stays. It tells us when it goes, so that we need not look.
      is_own_asleep_ = true;
      own_.wait(mutex_);
      is_own_asleep_ = false;
    }
    seen = turns_;
    if (!has_left_overs_ && !is_crowded_) {
      own_.wait_for(mutex_, own_after);
    }
  }
  mutex_.unlock();
}

}  // namespace tenure::backends
