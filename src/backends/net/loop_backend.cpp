#include "backends/net/loop_backend.hpp"

#include <memory>

namespace tenure::backends {

WatchId LoopBackend::watch(WatchRequest /*request*/, Sink sink) {
  sink(fail(Errc::unsupported, "this backend does not promise watches"));
  return {};
}

void LoopBackend::post(Job job) {
  {
    const sys::MutexGuard guard(mutex_);
    posted_.push_back(std::move(job));
    if (posted_.size() > 1) {
      return;
    }
  }
  pump_.post([this] {
    std::vector<Job> taken;
    {
      const sys::MutexGuard guard(mutex_);
      taken.swap(posted_);
    }
    for (auto& one : taken) {
      one();
    }
    send_all();
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

void LoopBackend::do_now(Job job) {
  // Whoever wakes us may still look at it when we are gone.
  const auto done = std::make_shared<Moment>();
  pump_.post([this, done, job = std::move(job)]() mutable {
    job();
    arrived(*done);
  });
  wait_for(*done);
}

}  // namespace tenure::backends
