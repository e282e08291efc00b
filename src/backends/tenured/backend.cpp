#include "backends/tenured/backend.hpp"

#include <utility>

#include "backends/tenured/proto_types.hpp"

namespace tenure::backends::tenured {
namespace {

/// Request id of a lease grant. Acquisitions count from 1, so it never collides.
constexpr std::uint64_t grant_request = ~std::uint64_t{0};
/// Extra time for a reply that arrives just at the deadline.
constexpr std::chrono::milliseconds grace{500};

PendingCallPtr make_call(PendingCall::Done done) {
  auto call = std::make_unique<PendingCall>();
  call->done = std::move(done);
  return call;
}

}  // namespace

template <class Job>
void TenuredBackend::post_behind(Job job) {
  post([this, job = std::move(job)]() mutable {
    send_all();
    job();
  });
}

TenuredBackend::TenuredBackend(Servers servers, std::string client)
    : shutdown_timeout_(servers.connect_timeout),
      session_client_(
          std::make_shared<SessionClient>(loop(), std::move(servers), std::move(client))) {}

Result<std::unique_ptr<TenuredBackend>> TenuredBackend::open(Servers servers, std::string client,
                                                             std::chrono::milliseconds timeout) {
  auto backend = std::make_unique<TenuredBackend>(std::move(servers), std::move(client));
  const auto connected = std::make_shared<sys::WaitSlot>();
  const auto answer = std::make_shared<Result<void>>();
  // Shared ownership: the event loop may still run this after a timeout has destroyed the frame.
  backend->post([session_client = backend->session_client_, answer, timeout,
                 tell = backend->signal_of(connected)] {
    session_client->start(timeout, [answer, tell](Result<void> first) {
      *answer = std::move(first);
      tell();
    });
  });
  // The session client enforces the timeout and knows the cause; the grace only covers a stopped
  // event loop.
  backend->parker().wait(*connected, std::chrono::steady_clock::now() + timeout + grace);
  if (!connected->is_signalled()) {
    return fail(Errc::unavailable, "no server responds");
  }
  if (!*answer) {
    return std::unexpected(answer->error());
  }
  return backend;
}

// Releases and revocations get a bounded time; leases that do not arrive expire at the server.
TenuredBackend::~TenuredBackend() {
  const auto deadline = std::chrono::steady_clock::now() + shutdown_timeout_ + grace;
  const auto stopped = std::make_shared<sys::WaitSlot>();
  post_behind(
      [this, tell = signal_of(stopped)] { session_client_->stop(shutdown_timeout_, tell); });
  // The session client enforces the timeout, unless this process was suspended.
  parker().wait(*stopped, deadline);
  stop();
  if (!stopped->is_signalled()) {
    // The loop has stopped, so this thread may access the session client.
    session_client_->cancel();
  }
}

std::function<void()> TenuredBackend::signal_of(const std::shared_ptr<sys::WaitSlot>& slot) {
  return [this, slot] { parker().signal(*slot); };
}

Capabilities TenuredBackend::capabilities() const noexcept {
  return {Capability::fencing,       Capability::fifo,    Capability::shared,
          Capability::modes,         Capability::ranges,  Capability::semaphore,
          Capability::several_names, Capability::upgrade, Capability::downgrade,
          Capability::new_ttl,       Capability::reentry, Capability::one_lease,
          Capability::deadlocks,     Capability::watches, Capability::outlives_process,
          Capability::failover};
}

Limits TenuredBackend::limits() const noexcept {
  // The ids of one renewal fit into one message of 64 KiB.
  return {.renewals_max = 4000};
}

void TenuredBackend::start(Listener& listener) {
  post([this, &listener] { session_client_->set_listener(listener); });
}

void TenuredBackend::send(PendingCallPtr call) {
  post([this, call = std::move(call)]() mutable { batch_.push_back(std::move(call)); });
}

void TenuredBackend::send_all() {
  if (!batch_.empty()) {
    session_client_->submit(std::exchange(batch_, {}));
  }
}

void TenuredBackend::grant_lease(LeaseRequest request, Done<void> done) {
  auto call = make_call(std::move(done));
  auto& grant = *call->operation.mutable_grant_lease();
  grant.set_id(request.id.get());
  grant.set_request_id(grant_request);
  grant.set_ttl_ms(static_cast<std::uint64_t>(request.ttl.count()));
  send(std::move(call));
}

void TenuredBackend::renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) {
  auto call = make_call(std::move(done));
  auto& renew = *call->operation.mutable_renew_leases();
  for (const auto lease : leases) {
    renew.add_ids(lease.get());
  }
  send(std::move(call));
}

void TenuredBackend::set_ttl(TtlRequest request, Done<void> done) {
  auto call = make_call(std::move(done));
  auto& set = *call->operation.mutable_set_ttl();
  set.set_lease_id(request.lease.get());
  set.set_request_id(request.request.get());
  set.set_ttl_ms(static_cast<std::uint64_t>(request.ttl.count()));
  call->tracking = request.tracking;
  send(std::move(call));
}

void TenuredBackend::revoke_lease(LeaseId lease, Done<void> done) {
  auto call = make_call(std::move(done));
  call->operation.mutable_revoke_lease()->set_id(lease.get());
  send(std::move(call));
}

void TenuredBackend::acquire(AcquireRequest request, Done<Granted> done) {
  auto call = make_call(std::move(done));
  write(request, *call->operation.mutable_acquire());
  send(std::move(call));
}

void TenuredBackend::abandon(LeaseId lease, RequestId request) {
  post_behind([this, lease, request] { session_client_->abandon(lease, request); });
}

void TenuredBackend::release(ReleaseRequest request, Done<void> done) {
  auto call = make_call(std::move(done));
  write(request, *call->operation.mutable_release());
  send(std::move(call));
}

void TenuredBackend::downgrade(DowngradeRequest request, Done<void> done) {
  auto call = make_call(std::move(done));
  write(request, *call->operation.mutable_downgrade());
  send(std::move(call));
}

WatchId TenuredBackend::watch(WatchRequest request, Sink sink) {
  const WatchId id{++last_watch_};
  const auto begun = std::make_shared<sys::WaitSlot>();
  const auto deadline = std::chrono::steady_clock::now() + shutdown_timeout_;
  post_behind([this, id, tell = signal_of(begun), request = std::move(request),
               sink = std::move(sink)]() mutable {
    session_client_->watch(id, std::move(request), std::move(sink), std::move(tell));
  });
  // The caller expects every event after this call, also those caused by another client, so it
  // waits for the acknowledgement. The loop's own thread cannot wait.
  if (!runs_here()) {
    parker().wait(*begun, deadline);
  }
  return id;
}

void TenuredBackend::unwatch(WatchId watch) {
  post_behind([this, watch] { session_client_->unwatch(watch); });
}

void TenuredBackend::holders(std::string name, Done<std::vector<Holder>> done) {
  post_behind([this, name = std::move(name), done = std::move(done)]() mutable {
    session_client_->holders(std::move(name), std::move(done));
  });
}

}  // namespace tenure::backends::tenured
