#include "backends/cluster/cluster_backend.hpp"

#include <utility>

#include "backends/cluster/proto_types.hpp"

namespace tenure::backends::cluster {
namespace {

/// Of granting a lease; those of acquisitions are counted from 1.
constexpr std::uint64_t grant_request = ~std::uint64_t{0};
constexpr std::chrono::milliseconds grace{500};
/// So many leave together though more may follow: the server works on them meanwhile.
constexpr std::size_t errands_at_once = 16;

ErrandPointer errand_of(Errand::Done done) {
  auto errand = std::make_unique<Errand>();
  errand->done = std::move(done);
  return errand;
}

}  // namespace

ClusterBackend::ClusterBackend(Servers servers, std::string client)
    : farewell_(servers.connect_timeout),
      courier_(std::make_shared<Courier>(pump_.loop(), std::move(servers), std::move(client))) {}

Result<std::unique_ptr<ClusterBackend>> ClusterBackend::open(Servers servers, std::string client,
                                                             std::chrono::milliseconds patience) {
  auto backend = std::make_unique<ClusterBackend>(std::move(servers), std::move(client));
  const auto connected = std::make_shared<Moment>();
  const auto answer = std::make_shared<Result<void>>();
  backend->pump_.post(
      [courier = backend->courier_, answer, patience, tell = backend->arrival_of(connected)] {
        courier->start(patience, [answer, tell](Result<void> first) {
          *answer = std::move(first);
          tell();
        });
      });
  // The courier keeps the time, and knows what went wrong.
  backend->wait_for(*connected, std::chrono::steady_clock::now() + patience + grace);
  if (!connected->is_here) {
    return fail(Errc::unavailable, "no server answers");
  }
  if (!*answer) {
    return std::unexpected(answer->error());
  }
  return backend;
}

ClusterBackend::~ClusterBackend() {
  const auto deadline = std::chrono::steady_clock::now() + farewell_ + grace;
  const auto stopped = std::make_shared<Moment>();
  pump_.post([this, tell = arrival_of(stopped)] { courier_->stop(farewell_, tell); });
  // The courier keeps the time, unless this process did not run for a while.
  wait_for(*stopped, deadline);
  pump_.stop();
  if (!stopped->is_here) {
    courier_->give_up();  // Nobody else runs the loop any more.
  }
}

std::function<void()> ClusterBackend::arrival_of(const std::shared_ptr<Moment>& moment) {
  return [this, moment] {
    moment->is_here = true;
    pump_.wake(moment->nap);
  };
}

void ClusterBackend::wait_for(Moment& moment, Nap::Deadline deadline) {
  for (;;) {
    const auto calls = moment.nap.calls();
    const bool is_late = deadline && std::chrono::steady_clock::now() >= *deadline;
    if (moment.is_here || is_late) {
      return;
    }
    pump_.sleep(moment.nap, calls, deadline);
  }
}

Promises ClusterBackend::promises() const noexcept {
  return {Promise::fencing,   Promise::fifo,      Promise::shared,           Promise::modes,
          Promise::ranges,    Promise::semaphore, Promise::several_names,    Promise::upgrade,
          Promise::downgrade, Promise::new_ttl,   Promise::reentry,          Promise::one_lease,
          Promise::deadlocks, Promise::watches,   Promise::outlives_process, Promise::failover};
}

Bounds ClusterBackend::bounds() const noexcept {
  // As many ids as fit into one message.
  return {.renewals_max = 4000};
}

void ClusterBackend::start(Listener& listener) {
  pump_.post([this, &listener] { courier_->listen(listener); });
}

void ClusterBackend::post(ErrandPointer errand) {
  std::size_t waiting = 0;
  {
    const sys::MutexGuard guard(mutex_);
    posted_.push_back(std::move(errand));
    waiting = posted_.size();
  }
  if (waiting > 1) {
    if (waiting == errands_at_once) {
      pump_.hurry();
    }
    return;
  }
  pump_.post([this] {
    std::vector<ErrandPointer> taken;
    {
      const sys::MutexGuard guard(mutex_);
      taken.swap(posted_);
    }
    courier_->run(std::move(taken));
  });
}

void ClusterBackend::grant_lease(LeaseRequest request, Done<void> done) {
  auto errand = errand_of(std::move(done));
  auto& grant = *errand->operation.mutable_grant_lease();
  grant.set_id(request.id.get());
  grant.set_request_id(grant_request);
  grant.set_ttl_ms(static_cast<std::uint64_t>(request.ttl.count()));
  post(std::move(errand));
}

void ClusterBackend::renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) {
  auto errand = errand_of(std::move(done));
  auto& renew = *errand->operation.mutable_renew_leases();
  for (const auto lease : leases) {
    renew.add_ids(lease.get());
  }
  post(std::move(errand));
}

void ClusterBackend::set_ttl(TtlRequest request, Done<void> done) {
  auto errand = errand_of(std::move(done));
  auto& set = *errand->operation.mutable_set_ttl();
  set.set_lease_id(request.lease.get());
  set.set_request_id(request.request.get());
  set.set_ttl_ms(static_cast<std::uint64_t>(request.ttl.count()));
  post(std::move(errand));
}

void ClusterBackend::revoke_lease(LeaseId lease, Done<void> done) {
  auto errand = errand_of(std::move(done));
  errand->operation.mutable_revoke_lease()->set_id(lease.get());
  post(std::move(errand));
}

void ClusterBackend::acquire(AcquireRequest request, Done<Granted> done) {
  auto errand = errand_of(std::move(done));
  write(request, *errand->operation.mutable_acquire());
  post(std::move(errand));
}

void ClusterBackend::abandon(LeaseId lease, RequestId request) {
  // After what was posted before: the acquire is one of those.
  pump_.post([this, lease, request] { courier_->abandon(lease, request); });
}

void ClusterBackend::release(ReleaseRequest request, Done<void> done) {
  auto errand = errand_of(std::move(done));
  write(request, *errand->operation.mutable_release());
  post(std::move(errand));
}

void ClusterBackend::downgrade(DowngradeRequest request, Done<void> done) {
  auto errand = errand_of(std::move(done));
  write(request, *errand->operation.mutable_downgrade());
  post(std::move(errand));
}

WatchId ClusterBackend::watch(WatchRequest request, Sink sink) {
  const WatchId id{++last_watch_};
  const auto begun = std::make_shared<Moment>();
  const auto deadline = std::chrono::steady_clock::now() + farewell_;
  pump_.post([this, id, tell = arrival_of(begun), request = std::move(request),
              sink = std::move(sink)]() mutable {
    courier_->watch(id, std::move(request), std::move(sink), std::move(tell));
  });
  // What happens after the call is to be told, also by another client. The loop cannot wait.
  if (!pump_.runs_here()) {
    wait_for(*begun, deadline);
  }
  return id;
}

void ClusterBackend::unwatch(WatchId watch) {
  pump_.post([this, watch] { courier_->unwatch(watch); });
}

void ClusterBackend::holders(std::string name, Done<std::vector<Holder>> done) {
  pump_.post([this, name = std::move(name), done = std::move(done)]() mutable {
    courier_->holders(std::move(name), std::move(done));
  });
}

}  // namespace tenure::backends::cluster
