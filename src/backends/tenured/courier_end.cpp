#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "backends/tenured/courier.hpp"

// The end of a courier.

namespace tenure::backends::tenured {

void Courier::stop(std::chrono::milliseconds timeout, std::function<void()> done) {
  stopped_ = std::move(done);
  end_waits();
  // Another one of several may lead soon.
  const bool has_hope = stream_ || !dialer_->knows_one_only();
  farewell_.expires_after(has_hope ? timeout : std::chrono::milliseconds(0));
  farewell_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) {
      self->end();
    }
  });
  done_if_idle();
}

void Courier::give_up() {
  end_waits();
  end();
}

void Courier::end_waits() {
  std::vector<Id> waits;
  for (const auto& [key, id] : waits_) {
    waits.push_back(id);
  }
  for (const auto id : waits) {
    fail_with(*take(id), client_closed());
  }
  watches_.end();
  looks_.end(client_closed());
}

void Courier::done_if_idle() {
  if (stopped_ && open_.empty()) {
    end();
  }
}

void Courier::end() {
  const auto done = std::exchange(stopped_, [] {});
  listener_ = nullptr;
  dialer_->stop();
  inspection_.cancel();
  check_.cancel();
  connect_timer_.cancel();
  farewell_.cancel();
  stream_.reset();
  if (const auto channel = std::exchange(channel_, nullptr)) {
    channel->close();
  }
  for (auto& [id, errand] : std::exchange(open_, {})) {
    fail_with(*errand, client_closed());
  }
  done();
}

}  // namespace tenure::backends::tenured
