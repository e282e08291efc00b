#include "backends/net/loop_backend.hpp"

#include <memory>
#include <utility>

namespace tenure::backends {
namespace {

/// For so long at most something waits for answers that are due.
constexpr std::chrono::milliseconds put_off_max{2};

}  // namespace

WatchId LoopBackend::watch(WatchRequest /*request*/, Sink sink) {
  sink(fail(Errc::unsupported, "this backend does not promise watches"));
  return {};
}

void LoopBackend::do_posted() {
  do {
    inbox_.run_all();
    send_all();
    is_put_off_ = is_full();
    // Who was told to wait for us, and came before we changed our mind, is not told again.
  } while (!is_put_off_ && !inbox_.empty());
  if (is_put_off_) {
    look_again_soon();
  }
}

void LoopBackend::look_again_soon() {
  if (std::exchange(is_look_set_, true)) {
    return;
  }
  look_.expires_after(put_off_max);
  look_.async_wait([this](const boost::system::error_code& error) {
    is_look_set_ = false;
    if (!error) {
      do_posted();
    }
  });
}

void LoopBackend::arrived(Moment& moment) {
  moment.is_here = true;
  pump_.wake(moment.nap);
}

void LoopBackend::wait_for(Moment& moment, Nap::Deadline deadline) {
  for (;;) {
    const auto calls = moment.nap.calls();
    const bool is_late = deadline && std::chrono::steady_clock::now() >= *deadline;
    if (moment.is_here || is_late) {
      return;
    }
    pump_.sleep(moment.nap, calls, deadline);
  }
}

void LoopBackend::do_now(std::move_only_function<void()> job) {
  // Whoever wakes us may still look at it when we are gone.
  const auto done = std::make_shared<Moment>();
  pump_.post([this, done, job = std::move(job)]() mutable {
    do_posted();
    job();
    arrived(*done);
  });
  wait_for(*done);
}

}  // namespace tenure::backends
