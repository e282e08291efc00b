#include "backends/etcd/etcd_backend.hpp"

#include <utility>

namespace tenure::backends::etcd {
namespace {

constexpr std::chrono::milliseconds grace{500};

Error the_client_ends() {
  return {.code = Errc::unavailable, .detail = "the client ends"};
}

}  // namespace

EtcdBackend::EtcdBackend(const Address& address)
    : farewell_(address.servers.connect_timeout),
      patience_(pump_.loop()),
      connection_(std::make_shared<Connection>(
          pump_.loop(), address,
          Connection::Calls{.up = [this] { came_up(); },
                            .down = [this](const Error& why) { went_down(why); },
                            .refused = [this](const Error& why) { refused(why); },
                            .idle = [this] { end_if_idle(); },
                            .shortest_ttl = [this] { return leases_.shortest_ttl(); }})),
      convoy_(pump_.loop(), connection_),
      watches_(connection_),
      leases_(connection_, [this](LeaseId lease) { locks_.lease_lost(lease); }),
      locks_(
          pump_.loop(), address.root,
          {.convoy = convoy_, .watches = watches_, .leases = leases_, .connection = *connection_}) {
}

Result<std::unique_ptr<EtcdBackend>> EtcdBackend::open(const Address& address,
                                                       std::chrono::milliseconds patience) {
  auto backend = std::make_unique<EtcdBackend>(address);
  backend->pump_.post([raw = backend.get(), patience] {
    raw->connection_->start(patience, [raw](Result<void> first) {
      raw->first_ = std::move(first);
      raw->arrived(raw->opened_);
    });
  });
  // The connection keeps the time, and knows what went wrong.
  backend->wait_for(backend->opened_, std::chrono::steady_clock::now() + patience + grace);
  if (!backend->opened_.is_here) {
    return fail(Errc::unavailable, "no server answers");
  }
  if (!backend->first_) {
    return std::unexpected(backend->first_.error());
  }
  return backend;
}

EtcdBackend::~EtcdBackend() {
  pump_.post([this] { begin_end(); });
  wait_for(ended_, std::nullopt);
  // What is on its way ends with the connection.
  const auto stopped = std::make_shared<Moment>();
  pump_.post([this, stopped] {
    patience_.cancel();
    connection_->stop();
    convoy_.fail_all(the_client_ends());
    leases_.fail_all(the_client_ends());
    arrived(*stopped);
  });
  wait_for(*stopped, std::nullopt);
  pump_.stop();
}

void EtcdBackend::begin_end() {
  is_ending_ = true;
  listener_ = nullptr;
  locks_.end();
  patience_.expires_after(connection_->is_up() ? farewell_ : std::chrono::milliseconds(0));
  patience_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      arrived(ended_);
    }
  });
  end_if_idle();
}

void EtcdBackend::end_if_idle() {
  if (is_ending_ && convoy_.is_idle() && leases_.is_idle()) {
    arrived(ended_);
  }
}

void EtcdBackend::arrived(Moment& moment) {
  moment.is_here = true;
  pump_.wake(moment.nap);
}

void EtcdBackend::wait_for(Moment& moment, Nap::Deadline deadline) {
  for (;;) {
    const auto calls = moment.nap.calls();
    const bool is_late = deadline && std::chrono::steady_clock::now() >= *deadline;
    if (moment.is_here || is_late) {
      return;
    }
    pump_.sleep(moment.nap, calls, deadline);
  }
}

// The connection.

void EtcdBackend::came_up() {
  refusal_.reset();
  leases_.up();
  watches_.up();
  convoy_.flush();
  if (listener_ != nullptr) {
    listener_->connection_changed(true, {});
  }
}

void EtcdBackend::went_down(const Error& why) {
  leases_.down();
  watches_.down();
  if (listener_ != nullptr) {
    listener_->connection_changed(false, why.detail);
  }
  if (is_ending_) {
    arrived(ended_);
  }
}

void EtcdBackend::refused(const Error& why) {
  refusal_ = why;
  convoy_.fail_most(why);
  leases_.fail_all(why);
  locks_.fail_waits(why);
}

// The seam.

Promises EtcdBackend::promises() const noexcept {
  return {Promise::fencing,   Promise::fifo,    Promise::shared,    Promise::semaphore,
          Promise::downgrade, Promise::reentry, Promise::one_lease, Promise::outlives_process,
          Promise::failover};
}

Bounds EtcdBackend::bounds() const noexcept {
  return {};
}

void EtcdBackend::start(Listener& listener) {
  pump_.post([this, &listener] {
    listener_ = &listener;
    locks_.listen(&listener);
    if (connection_->is_up()) {
      listener.connection_changed(true, {});
    }
  });
}

void EtcdBackend::post(Job job) {
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
  });
}

void EtcdBackend::grant_lease(LeaseRequest request, Done<void> done) {
  post([this, id = request.id, ttl = request.ttl, done = std::move(done)]() mutable {
    if (refusal_) {
      done(std::unexpected(*refusal_));
      return;
    }
    leases_.grant(id, ttl, std::move(done));
  });
}

void EtcdBackend::renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) {
  post([this, leases = std::move(leases), done = std::move(done)]() mutable {
    leases_.renew(std::move(leases), std::move(done));
  });
}

void EtcdBackend::revoke_lease(LeaseId lease, Done<void> done) {
  post([this, lease, done = std::move(done)]() mutable { locks_.revoke(lease, std::move(done)); });
}

void EtcdBackend::acquire(AcquireRequest request, Done<Granted> done) {
  post([this, request = std::move(request), done = std::move(done)]() mutable {
    if (refusal_) {
      done(std::unexpected(*refusal_));
      return;
    }
    locks_.acquire(std::move(request), std::move(done));
  });
}

void EtcdBackend::abandon(LeaseId lease, RequestId request) {
  post([this, lease, request] { locks_.abandon(lease, request); });
}

void EtcdBackend::release(ReleaseRequest request, Done<void> done) {
  post([this, request = std::move(request), done = std::move(done)]() mutable {
    locks_.release(request, std::move(done));
  });
}

void EtcdBackend::downgrade(DowngradeRequest request, Done<void> done) {
  post([this, request = std::move(request), done = std::move(done)]() mutable {
    locks_.downgrade(request, std::move(done));
  });
}

WatchId EtcdBackend::watch(WatchRequest /*request*/, Sink sink) {
  sink(fail(Errc::unsupported, "this backend does not promise watches"));
  return {};
}

void EtcdBackend::holders(std::string name, Done<std::vector<Holder>> done) {
  post([this, name = std::move(name), done = std::move(done)]() mutable {
    if (refusal_) {
      done(std::unexpected(*refusal_));
      return;
    }
    locks_.holders(name, std::move(done));
  });
}

}  // namespace tenure::backends::etcd
