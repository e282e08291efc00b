#include "backends/redis/redis_backend.hpp"

#include <algorithm>
#include <utility>

#include "sys/chance.hpp"

namespace tenure::backends::redis {
namespace {

/// By which the server wakes us: short, since it stands in every record.
std::string fresh_client() {
  constexpr std::string_view digits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string id;
  for (auto rest = sys::random_id(); id.size() < 10; rest /= digits.size()) {
    id.push_back(digits[rest % digits.size()]);
  }
  return id;
}

}  // namespace

RedisBackend::RedisBackend(const Address& address)
    : farewell_(address.timeout),
      patience_(pump_.loop()),
      pipeline_(std::make_shared<Pipeline>(
          pump_.loop(), address,
          Pipeline::Calls{.ready = [this] { line_ready(); },
                          .lost = [this](const Error& why) { line_lost(why); },
                          .idle = [this] { end_if_idle(); },
                          .doubtful =
                              [this](std::string doubt) {
                                if (std::ranges::find(doubts_, doubt) == doubts_.end()) {
                                  doubts_.push_back(std::move(doubt));
                                }
                              }})),
      locks_(pump_.loop(), *pipeline_, Commands(address.name_space, fresh_client())),
      waker_(pump_.loop(), address, locks_.commands().channel(),
             Waker::Calls{.ready = [this] { line_ready(); },
                          .heard =
                              [this](std::string_view message) {
                                locks_.heard(message);
                                pipeline_->flush();
                              },
                          .lost = [this](const Error& why) { line_lost(why); }}) {}

Result<std::unique_ptr<RedisBackend>> RedisBackend::open(const Address& address,
                                                         std::chrono::milliseconds patience) {
  auto backend = std::make_unique<RedisBackend>(address);
  backend->pump_.post([raw = backend.get()] {
    raw->pipeline_->start();
    raw->waker_.start();
  });
  backend->wait_for(backend->opened_, std::chrono::steady_clock::now() + patience);
  if (!backend->opened_.is_here) {
    return fail(Errc::unavailable, name_of(address.endpoint) + ": no answer");
  }
  if (!*backend->first_) {
    return std::unexpected(backend->first_->error());
  }
  return backend;
}

RedisBackend::~RedisBackend() {
  pump_.post([this] {
    is_ending_ = true;
    listener_ = nullptr;
    locks_.end();
    patience_.expires_after(pipeline_->is_ready() ? farewell_ : std::chrono::milliseconds(0));
    patience_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        arrived(ended_);
      }
    });
    end_if_idle();
  });
  wait_for(ended_, std::nullopt);
  // What is on its way ends with the lines.
  const auto stopped = std::make_shared<Moment>();
  pump_.post([this, stopped] {
    patience_.cancel();
    waker_.stop();
    pipeline_->stop({.code = Errc::unavailable, .detail = "the client ends"});
    arrived(*stopped);
  });
  wait_for(*stopped, std::nullopt);
  pump_.stop();
}

std::vector<std::string> RedisBackend::doubts() {
  return doubts_;
}

void RedisBackend::arrived(Moment& moment) {
  moment.is_here = true;
  pump_.wake(moment.nap);
}

void RedisBackend::wait_for(Moment& moment, Nap::Deadline deadline) {
  for (;;) {
    const auto calls = moment.nap.calls();
    const bool is_late = deadline && std::chrono::steady_clock::now() >= *deadline;
    if (moment.is_here || is_late) {
      return;
    }
    pump_.sleep(moment.nap, calls, deadline);
  }
}

void RedisBackend::end_if_idle() {
  if (is_ending_ && pipeline_->is_idle()) {
    arrived(ended_);
  }
}

void RedisBackend::line_ready() {
  const bool is_connected = pipeline_->is_ready() && waker_.is_ready();
  if (!is_connected || is_ending_) {
    return;
  }
  locks_.ask_again();
  if (!first_) {
    first_ = Result<void>();
    arrived(opened_);
  }
  if (listener_ != nullptr && !std::exchange(is_told_connected_, true)) {
    listener_->connection_changed(true, {});
  }
}

void RedisBackend::line_lost(const Error& why) {
  if (!first_) {
    first_ = std::unexpected(why);
    arrived(opened_);
  }
  if (listener_ != nullptr && std::exchange(is_told_connected_, false)) {
    listener_->connection_changed(false, why.detail);
  }
  if (is_ending_) {
    arrived(ended_);
  }
}

Promises RedisBackend::promises() const noexcept {
  return {Promise::fencing,         Promise::fifo,      Promise::shared,
          Promise::semaphore,       Promise::upgrade,   Promise::downgrade,
          Promise::reentry,         Promise::one_lease, Promise::barging,
          Promise::outlives_process};
}

Bounds RedisBackend::bounds() const noexcept {
  return {};
}

void RedisBackend::start(Listener& listener) {
  pump_.post([this, &listener] {
    listener_ = &listener;
    locks_.listen(&listener);
    if (pipeline_->is_ready() && waker_.is_ready()) {
      is_told_connected_ = true;
      listener.connection_changed(true, {});
    }
  });
}

void RedisBackend::post(Job job) {
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
    pipeline_->flush();
  });
}

void RedisBackend::grant_lease(LeaseRequest request, Done<void> done) {
  post([this, request = std::move(request), done = std::move(done)]() mutable {
    locks_.grant_lease(request);
    done({});
  });
}

void RedisBackend::renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) {
  post([this, leases = std::move(leases), done = std::move(done)]() mutable {
    locks_.renew(std::move(leases), std::move(done));
  });
}

void RedisBackend::revoke_lease(LeaseId lease, Done<void> done) {
  post([this, lease, done = std::move(done)]() mutable { locks_.revoke(lease, std::move(done)); });
}

void RedisBackend::acquire(AcquireRequest request, Done<Granted> done) {
  post([this, request = std::move(request), done = std::move(done)]() mutable {
    locks_.acquire(std::move(request), std::move(done));
  });
}

void RedisBackend::abandon(LeaseId lease, RequestId request) {
  post([this, lease, request] { locks_.abandon(lease, request); });
}

void RedisBackend::release(ReleaseRequest request, Done<void> done) {
  post([this, request = std::move(request), done = std::move(done)]() mutable {
    locks_.release(request, std::move(done));
  });
}

void RedisBackend::downgrade(DowngradeRequest request, Done<void> done) {
  post([this, request = std::move(request), done = std::move(done)]() mutable {
    locks_.downgrade(request, std::move(done));
  });
}

WatchId RedisBackend::watch(WatchRequest /*request*/, Sink sink) {
  sink(fail(Errc::unsupported, "this backend does not promise watches"));
  return {};
}

void RedisBackend::holders(std::string name, Done<std::vector<Holder>> done) {
  post([this, name = std::move(name), done = std::move(done)]() mutable {
    locks_.holders(name, std::move(done));
  });
}

}  // namespace tenure::backends::redis
