#include "backends/net/pump.hpp"

#include <chrono>
#include <cstddef>
#include <optional>

namespace tenure::backends {
namespace {

/// When no guest came for so long, our own thread runs the loop. Until then nobody hears what the
/// server says unasked.
constexpr std::chrono::milliseconds own_after{2};
/// So many jobs of others are done by one who only came to post one, or who is about to go. Then
/// somebody else goes on, or a busy client would keep it for as long as it is busy.
constexpr std::size_t favours_max = 256;
/// When one who runs the loop has woken so many others, they are a crowd, and stay one while so
/// many are woken whenever our own thread looks.
constexpr std::uint32_t crowd_min = 8;
/// So long after one has looked another one does. The shorter, the sooner a server that has
/// answered gets more to do.
constexpr std::chrono::microseconds look_gap{2};
/// So often one lets others go first before it sleeps.
constexpr int doze_turns = 8;
/// If that takes longer, others want the core for more than a moment.
constexpr std::chrono::milliseconds doze_max{1};

}  // namespace

Pump::Pump(std::chrono::microseconds awake_for)
    : work_(loop_.get_executor()),
      vigil_(awake_for),
      takes_turns_(awake_for > std::chrono::microseconds::zero()),
      thread_([this] { run_own(); }) {}

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
  if (is_idle) {
    idler_ = std::this_thread::get_id();
  }
  bool runs = false;
  if (!is_idle && may_doze_) {
    ++dozers_;
    const auto dozed = doze(nap, calls_seen);
    if (dozed == Dozed::well) {
      end_doze();
      return;
    }
    const sys::MutexGuard lock(mutex_);
    --dozers_;
    dozing_.lost(dozed == Dozed::too_long ? 2 : 1);
    is_dozing_doubtful_ = true;
    may_doze_ = false;  // Whoever comes next asks whether it pays.
    runs = take_loop_or_wait(nap, what);
  } else {
    const sys::MutexGuard lock(mutex_);
    may_doze_ = is_crowded_ && dozing_.is_on();
    runs = take_loop_or_wait(nap, what);
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

bool Pump::take_loop(Runner as) {
  if (runner_ != Runner::nobody) {
    // Who has nothing else to do gives way to one who waits, but our thread not while it serves.
    const bool gives_way = runner_ == Runner::own ? !is_crowd_served()
                                                  : runner_ == Runner::idler && as == Runner::guest;
    if (gives_way && !is_wanted_.exchange(true)) {
      boost::asio::post(loop_, [] {});
    }
    return false;
  }
  runner_ = as;
  is_wanted_ = false;
  has_left_overs_ = false;
  return true;
}

bool Pump::take_loop_or_wait(Nap& nap, SleepFor what) {
  const bool is_idle = what == SleepFor::work;
  const bool runs = take_loop(is_idle ? Runner::idler : Runner::guest);
  if (!runs) {
    (is_idle ? idlers_ : sleepers_).push_back(nap);
  }
  return runs;
}

/// Where threads want the cores in turn, each for a moment, to let the others go first takes less
/// than to sleep and to be woken: the answer is there when it is our turn again, or we find it.
Pump::Dozed Pump::doze(const Nap& nap, std::uint32_t calls_seen) {
  std::optional<std::chrono::steady_clock::time_point> began;
  for (int turn = 0; turn < doze_turns; ++turn) {
    sys::let_others();
    if (nap.is_roused(calls_seen)) {
      return Dozed::well;
    }
    const auto now = std::chrono::steady_clock::now();
    look_after(now);
    if (nap.is_roused(calls_seen)) {
      return Dozed::well;
    }
    if (now - began.value_or(now) > doze_max) {
      return Dozed::too_long;
    }
    began = began.value_or(now);
  }
  return Dozed::in_vain;
}

void Pump::look_after(std::chrono::steady_clock::time_point now) {
  if (now < look_at_.load(std::memory_order_relaxed)) {
    return;
  }
  look_at_.store(now + look_gap, std::memory_order_relaxed);
  {
    const sys::MutexGuard lock(mutex_);
    if (!take_loop(Runner::guest)) {
      return;
    }
  }
  auto favours = favours_max;
  do_favours(favours);
  leave(favours);
}

/// It dozed well.
void Pump::end_doze() {
  const bool is_last = --dozers_ == 0;
  if (!is_last && !is_dozing_doubtful_) {
    return;
  }
  const sys::MutexGuard lock(mutex_);
  dozing_.won();
  is_dozing_doubtful_ = dozing_.is_doubtful();
  if (runner_ == Runner::nobody) {
    appoint_next();
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
  const auto woken = std::exchange(woken_, 0);
  while (!try_leave(favours == 0, woken)) {
    do_favours(favours);
  }
}

bool Pump::try_leave(bool is_tired, std::uint32_t woken) {
  const sys::MutexGuard lock(mutex_);
  if (std::exchange(is_nudged_, false) && !is_tired) {
    return false;
  }
  ++turns_;
  woken_lately_ += woken;
  is_crowded_ = is_crowded_ || woken >= crowd_min;
  runner_ = Runner::nobody;
  appoint_next();
  if (runner_ != Runner::nobody) {
    is_nudged_ = is_tired;  // It may go at once, and looks here first.
    return true;
  }
  has_left_overs_ = is_tired;
  if (is_own_asleep_ || has_left_overs_) {
    own_.notify_one();
  }
  return true;
}

/// One that sleeps runs the loop, unless some are about who look after it. For a crowd that does
/// not take turns our own thread does: one of them would have to wait for a core among all the
/// others that were just woken, and they all for it.
void Pump::appoint_next() {
  auto* const next = sleepers_.first();
  if (is_crowd_served() && (next != nullptr || dozers_ > 0)) {
    runner_ = Runner::own;
    is_wanted_ = false;
    own_.notify_one();
    return;
  }
  if (next == nullptr || dozers_ > 0) {
    return;
  }
  sleepers_.remove(*next);
  runner_ = Runner::guest;
  // While we have the mutex it cannot have gone.
  next->appoint();
}

/// Our thread, until a guest wants to.
void Pump::run_until_wanted() {
  while (!is_wanted_) {
    loop_.run_one();
  }
  leave(favours_max);
}

/// Our thread, while there is one.
void Pump::serve_crowd() {
  bool is_crowd = true;
  while (is_crowd && !is_wanted_) {
    woken_ = 0;
    const auto end = std::chrono::steady_clock::now() + own_after;
    while (!is_wanted_ && std::chrono::steady_clock::now() < end) {
      loop_.run_one_until(end);
    }
    is_crowd = woken_ >= crowd_min;
  }
  const sys::MutexGuard lock(mutex_);
  is_crowded_ = is_crowd || is_wanted_;
  may_doze_ = may_doze_ && is_crowded_;
}

void Pump::run_own() {
  mutex_.lock();
  auto seen = turns_;
  while (!is_stopping_) {
    if (runner_ == Runner::own) {
      mutex_.unlock();
      serve_crowd();
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
      idler.appoint();
    } else if (is_due) {
      runner_ = Runner::own;
      is_wanted_ = false;
      mutex_.unlock();
      run_until_wanted();
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
    if (runner_ == Runner::own) {
      continue;
    }
    is_crowded_ = is_crowded_ && std::exchange(woken_lately_, 0) >= crowd_min;
    may_doze_ = may_doze_ && is_crowded_;
    if (!has_left_overs_) {
      own_.wait_for(mutex_, own_after);
    }
  }
  mutex_.unlock();
}

}  // namespace tenure::backends
