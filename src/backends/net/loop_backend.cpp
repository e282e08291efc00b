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
  inbox_.run_all();
  send_all();
  worth_a_look_ = static_cast<std::int64_t>(worth_a_look());
  if (inbox_.size() >= worth_a_look_) {
    // They came before we changed our mind, and did not tell us.
    pump_.post([this] { do_posted(); });
  } else if (worth_a_look_ > 1) {
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
