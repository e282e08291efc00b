#include "backends/etcd/backend.hpp"

#include <utility>

namespace tenure::backends::etcd {
namespace {

/// Extra time for a reply that arrives just at the deadline.
constexpr std::chrono::milliseconds grace{500};

}  // namespace

EtcdBackend::EtcdBackend(const Address& address)
    : shutdown_timeout_(address.servers.connect_timeout),
      shutdown_timer_(loop()),
      connection_(std::make_shared<Connection>(
          loop(), address,
          Connection::Callbacks{.connected = [this] { connected(); },
                                .disconnected = [this](const Error& why) { disconnected(why); },
                                .rejected = [this](const Error& why) { rejected(why); },
                                .idle = [this] { shut_down_if_idle(); },
                                .shortest_ttl = [this] { return leases_.shortest_ttl(); }})),
      batcher_(loop(), connection_),
      watches_(connection_),
      leases_(connection_, [this](LeaseId lease) { locks_.lease_lost(lease); }),
      locks_(loop(), address.root,
             {.batcher = batcher_,
              .watches = watches_,
              .leases = leases_,
              .connection = *connection_}) {}

Result<std::unique_ptr<EtcdBackend>> EtcdBackend::open(const Address& address,
                                                       std::chrono::milliseconds timeout) {
  auto backend = std::make_unique<EtcdBackend>(address);
  backend->post([raw = backend.get(), timeout] {
    raw->connection_->start(timeout, [raw](Result<void> first) {
      raw->first_attempt_ = std::move(first);
      raw->parker().signal(raw->first_attempt_done_);
    });
  });
  // The connection enforces the timeout and knows the cause; the grace only covers a stopped event
  // loop.
  backend->parker().wait(backend->first_attempt_done_,
                         std::chrono::steady_clock::now() + timeout + grace);
  if (!backend->first_attempt_done_.is_signalled()) {
    return fail(Errc::unavailable, "no server responds");
  }
  if (!backend->first_attempt_) {
    return std::unexpected(backend->first_attempt_.error());
  }
  return backend;
}

EtcdBackend::~EtcdBackend() {
  do_now([this] { begin_shutdown(); });
  parker().wait(shutdown_done_, std::nullopt);
  // Requests in flight end with the connection.
  do_now([this] {
    shutdown_timer_.cancel();
    connection_->stop();
    batcher_.fail_all(client_closed(), TxnBatcher::Survivors::fail);
    leases_.fail_all(client_closed());
  });
  stop();
}

void EtcdBackend::begin_shutdown() {
  is_shutting_down_ = true;
  listener_ = nullptr;
  locks_.shut_down();
  shutdown_timer_.expires_after(connection_->is_up() ? shutdown_timeout_
                                                     : std::chrono::milliseconds(0));
  shutdown_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      parker().signal(shutdown_done_);
    }
  });
  shut_down_if_idle();
}

void EtcdBackend::shut_down_if_idle() {
  if (is_shutting_down_ && batcher_.is_idle() && leases_.is_idle()) {
    parker().signal(shutdown_done_);
  }
}

// Connection events.

void EtcdBackend::connected() {
  locks_.accepted();
  leases_.connected();
  watches_.connected();
  batcher_.flush();
  if (listener_ != nullptr) {
    listener_->connection_changed(true, {});
  }
}

void EtcdBackend::disconnected(const Error& why) {
  leases_.disconnected();
  watches_.disconnected();
  if (listener_ != nullptr) {
    listener_->connection_changed(false, why.detail);
  }
  if (is_shutting_down_) {
    parker().signal(shutdown_done_);
  }
}

void EtcdBackend::rejected(const Error& why) {
  batcher_.fail_all(why, TxnBatcher::Survivors::keep);
  leases_.fail_all(why);
  locks_.rejected(why);
}

// Backend interface.

Capabilities EtcdBackend::capabilities() const noexcept {
  return {Capability::fencing,   Capability::fifo,
          Capability::shared,    Capability::semaphore,
          Capability::downgrade, Capability::reentry,
          Capability::one_lease, Capability::outlives_process,
          Capability::failover};
}

void EtcdBackend::start(Listener& listener) {
  post([this, &listener] {
    listener_ = &listener;
    locks_.set_listener(&listener);
    if (connection_->is_up()) {
      listener.connection_changed(true, {});
    }
  });
}

}  // namespace tenure::backends::etcd
