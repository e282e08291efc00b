#include "backends/tenured/cluster_backend.hpp"

#include <utility>

#include "backends/tenured/proto_types.hpp"

namespace tenure::backends::tenured {
namespace {

/// Of granting a lease; those of acquisitions are counted from 1.
constexpr std::uint64_t grant_request = ~std::uint64_t{0};
constexpr std::chrono::milliseconds grace{500};

ErrandPointer errand_of(Errand::Done done) {
  auto errand = std::make_unique<Errand>();
  errand->done = std::move(done);
  return errand;
}

}  // namespace

template <class Job>
void ClusterBackend::post_behind(Job job) {
  post([this, job = std::move(job)]() mutable {
    send_all();
    job();
  });
}

ClusterBackend::ClusterBackend(Servers servers, std::string client)
    : farewell_(servers.connect_timeout),
      courier_(std::make_shared<Courier>(loop(), std::move(servers), std::move(client))) {}

Result<std::unique_ptr<ClusterBackend>> ClusterBackend::open(Servers servers, std::string client,
                                                             std::chrono::milliseconds timeout) {
  auto backend = std::make_unique<ClusterBackend>(std::move(servers), std::move(client));
  const auto connected = std::make_shared<sys::WaitSlot>();
  const auto answer = std::make_shared<Result<void>>();
  backend->post(
      [courier = backend->courier_, answer, timeout, tell = backend->signal_of(connected)] {
        courier->start(timeout, [answer, tell](Result<void> first) {
          *answer = std::move(first);
          tell();
        });
      });
  // The courier keeps the time, and knows what went wrong.
  backend->parker().wait(*connected, std::chrono::steady_clock::now() + timeout + grace);
  if (!connected->is_signalled()) {
    return fail(Errc::unavailable, "no server answers");
  }
  if (!*answer) {
    return std::unexpected(answer->error());
  }
  return backend;
}

ClusterBackend::~ClusterBackend() {
  const auto deadline = std::chrono::steady_clock::now() + farewell_ + grace;
  const auto stopped = std::make_shared<sys::WaitSlot>();
  post_behind([this, tell = signal_of(stopped)] { courier_->stop(farewell_, tell); });
  // The courier keeps the time, unless this process did not run for a while.
  parker().wait(*stopped, deadline);
  stop();
  if (!stopped->is_signalled()) {
    courier_->give_up();  // Nobody else runs the loop any more.
  }
}

std::function<void()> ClusterBackend::signal_of(const std::shared_ptr<sys::WaitSlot>& slot) {
  return [this, slot] { parker().signal(*slot); };
}

Capabilities ClusterBackend::capabilities() const noexcept {
  return {Capability::fencing,       Capability::fifo,    Capability::shared,
          Capability::modes,         Capability::ranges,  Capability::semaphore,
          Capability::several_names, Capability::upgrade, Capability::downgrade,
          Capability::new_ttl,       Capability::reentry, Capability::one_lease,
          Capability::deadlocks,     Capability::watches, Capability::outlives_process,
          Capability::failover};
}

Limits ClusterBackend::limits() const noexcept {
  // As many ids as fit into one message.
  return {.renewals_max = 4000};
}

void ClusterBackend::start(Listener& listener) {
  post([this, &listener] { courier_->listen(listener); });
}

void ClusterBackend::send(ErrandPointer errand) {
  post([this, errand = std::move(errand)]() mutable { batch_.push_back(std::move(errand)); });
}

void ClusterBackend::send_all() {
  if (!batch_.empty()) {
    courier_->run(std::exchange(batch_, {}));
  }
}

void ClusterBackend::grant_lease(LeaseRequest request, Done<void> done) {
  auto errand = errand_of(std::move(done));
  auto& grant = *errand->operation.mutable_grant_lease();
  grant.set_id(request.id.get());
  grant.set_request_id(grant_request);
  grant.set_ttl_ms(static_cast<std::uint64_t>(request.ttl.count()));
  send(std::move(errand));
}

void ClusterBackend::renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) {
  auto errand = errand_of(std::move(done));
  auto& renew = *errand->operation.mutable_renew_leases();
  for (const auto lease : leases) {
    renew.add_ids(lease.get());
  }
  send(std::move(errand));
}

void ClusterBackend::set_ttl(TtlRequest request, Done<void> done) {
  auto errand = errand_of(std::move(done));
  auto& set = *errand->operation.mutable_set_ttl();
  set.set_lease_id(request.lease.get());
  set.set_request_id(request.request.get());
  set.set_ttl_ms(static_cast<std::uint64_t>(request.ttl.count()));
  send(std::move(errand));
}

void ClusterBackend::revoke_lease(LeaseId lease, Done<void> done) {
  auto errand = errand_of(std::move(done));
  errand->operation.mutable_revoke_lease()->set_id(lease.get());
  send(std::move(errand));
}

void ClusterBackend::acquire(AcquireRequest request, Done<Granted> done) {
  auto errand = errand_of(std::move(done));
  write(request, *errand->operation.mutable_acquire());
  send(std::move(errand));
}

void ClusterBackend::abandon(LeaseId lease, RequestId request) {
  post_behind([this, lease, request] { courier_->abandon(lease, request); });
}

void ClusterBackend::release(ReleaseRequest request, Done<void> done) {
  auto errand = errand_of(std::move(done));
  write(request, *errand->operation.mutable_release());
  send(std::move(errand));
}

void ClusterBackend::downgrade(DowngradeRequest request, Done<void> done) {
  auto errand = errand_of(std::move(done));
  write(request, *errand->operation.mutable_downgrade());
  send(std::move(errand));
}

WatchId ClusterBackend::watch(WatchRequest request, Sink sink) {
  const WatchId id{++last_watch_};
  const auto begun = std::make_shared<sys::WaitSlot>();
  const auto deadline = std::chrono::steady_clock::now() + farewell_;
  post_behind([this, id, tell = signal_of(begun), request = std::move(request),
               sink = std::move(sink)]() mutable {
    courier_->watch(id, std::move(request), std::move(sink), std::move(tell));
  });
  // What happens after the call is to be told, also by another client. The loop cannot wait.
  if (!runs_here()) {
    parker().wait(*begun, deadline);
  }
  return id;
}

void ClusterBackend::unwatch(WatchId watch) {
  post_behind([this, watch] { courier_->unwatch(watch); });
}

void ClusterBackend::holders(std::string name, Done<std::vector<Holder>> done) {
  post_behind([this, name = std::move(name), done = std::move(done)]() mutable {
    courier_->holders(std::move(name), std::move(done));
  });
}

}  // namespace tenure::backends::tenured
