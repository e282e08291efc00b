#include "backends/etcd/etcd_backend.hpp"

#include <utility>

namespace tenure::backends::etcd {
namespace {

constexpr std::chrono::milliseconds grace{500};

}  // namespace

EtcdBackend::EtcdBackend(const Address& address)
    : farewell_(address.servers.connect_timeout),
      timeout_timer_(loop()),
      connection_(std::make_shared<Connection>(
          loop(), address,
          Connection::Calls{.up = [this] { came_up(); },
                            .down = [this](const Error& why) { went_down(why); },
                            .refused = [this](const Error& why) { refused(why); },
                            .idle = [this] { end_if_idle(); },
                            .shortest_ttl = [this] { return leases_.shortest_ttl(); }})),
      convoy_(loop(), connection_),
      watches_(connection_),
      leases_(connection_, [this](LeaseId lease) { locks_.lease_lost(lease); }),
      locks_(
          loop(), address.root,
          {.convoy = convoy_, .watches = watches_, .leases = leases_, .connection = *connection_}) {
}

Result<std::unique_ptr<EtcdBackend>> EtcdBackend::open(const Address& address,
                                                       std::chrono::milliseconds timeout) {
  auto backend = std::make_unique<EtcdBackend>(address);
  backend->post([raw = backend.get(), timeout] {
    raw->connection_->start(timeout, [raw](Result<void> first) {
      raw->first_ = std::move(first);
      raw->parker().signal(raw->opened_);
    });
  });
  // The connection keeps the time, and knows what went wrong.
  backend->parker().wait(backend->opened_, std::chrono::steady_clock::now() + timeout + grace);
  if (!backend->opened_.is_signalled()) {
    return fail(Errc::unavailable, "no server answers");
  }
  if (!backend->first_) {
    return std::unexpected(backend->first_.error());
  }
  return backend;
}

EtcdBackend::~EtcdBackend() {
  do_now([this] { begin_end(); });
  parker().wait(ended_, std::nullopt);
  // What is on its way ends with the connection.
  do_now([this] {
    timeout_timer_.cancel();
    connection_->stop();
    convoy_.fail_all(client_closed());
    leases_.fail_all(client_closed());
  });
  stop();
}

void EtcdBackend::begin_end() {
  is_ending_ = true;
  listener_ = nullptr;
  locks_.end();
  timeout_timer_.expires_after(connection_->is_up() ? farewell_ : std::chrono::milliseconds(0));
  timeout_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      parker().signal(ended_);
    }
  });
  end_if_idle();
}

void EtcdBackend::end_if_idle() {
  if (is_ending_ && convoy_.is_idle() && leases_.is_idle()) {
    parker().signal(ended_);
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
    parker().signal(ended_);
  }
}

void EtcdBackend::refused(const Error& why) {
  refusal_ = why;
  convoy_.fail_most(why);
  leases_.fail_all(why);
  locks_.fail_waits(why);
}

// The seam.

Capabilities EtcdBackend::capabilities() const noexcept {
  return {Capability::fencing,   Capability::fifo,
          Capability::shared,    Capability::semaphore,
          Capability::downgrade, Capability::reentry,
          Capability::one_lease, Capability::outlives_process,
          Capability::failover};
}

Limits EtcdBackend::limits() const noexcept {
  return {};
}

void EtcdBackend::start(Listener& listener) {
  post([this, &listener] {
    listener_ = &listener;
    locks_.listen(&listener);
    if (connection_->is_up()) {
      listener.connection_changed(true, {});
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
