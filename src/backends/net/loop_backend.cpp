#include "backends/net/loop_backend.hpp"

#include <utility>

namespace tenure::backends {

void LoopBackend::do_posted() {
  jobs_.run_all();
  send_all();
  if (jobs_.size() > 0) {
    // A job that was pushed while run_all() emptied the queue was not the first one there, so
    // post() did not notify the loop.
    runner_.post([this] { do_posted(); });
  }
}

void LoopBackend::do_now(std::move_only_function<void()> job) {
  sys::WaitSlot done;
  runner_.post([this, &done, job = std::move(job)]() mutable {
    do_posted();
    job();
    runner_.signal(done);
  });
  runner_.wait(done, std::nullopt);
}

}  // namespace tenure::backends
