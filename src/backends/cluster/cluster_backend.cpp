#include "backends/cluster/cluster_backend.hpp"

#include <future>
#include <utility>

#include <boost/asio/post.hpp>

#include "backends/cluster/proto_types.hpp"

namespace tenure::backends::cluster {
namespace {

/// Of granting a lease; those of acquisitions are counted from 1.
constexpr std::uint64_t grant_request = ~std::uint64_t{0};

}  // namespace

ClusterBackend::ClusterBackend(Servers servers, std::string client)
    : farewell_(servers.connect_timeout),
      work_(loop_.get_executor()),
      courier_(std::make_shared<Courier>(loop_, std::move(servers), std::move(client))),
      thread_([this] { loop_.run(); }) {}

Result<std::unique_ptr<ClusterBackend>> ClusterBackend::open(Servers servers, std::string client,
                                                             std::chrono::milliseconds patience) {
  auto backend = std::make_unique<ClusterBackend>(std::move(servers), std::move(client));
  auto promise = std::make_shared<std::promise<Result<void>>>();
  auto answer = promise->get_future();
  boost::asio::post(backend->loop_, [courier = backend->courier_, promise] {
    courier->start([promise](Result<void> first) { promise->set_value(std::move(first)); });
  });
  if (answer.wait_for(patience) != std::future_status::ready) {
    return fail(Errc::unavailable, "no server answers");
  }
  if (const auto first = answer.get(); !first) {
    return std::unexpected(first.error());
  }
  return backend;
}

ClusterBackend::~ClusterBackend() {
  std::promise<void> stopped;
  boost::asio::post(
      loop_, [this, &stopped] { courier_->stop(farewell_, [&stopped] { stopped.set_value(); }); });
  stopped.get_future().wait();
  work_.reset();
  loop_.stop();
  thread_.join();
}

Promises ClusterBackend::promises() const noexcept {
  return {Promise::fencing,       Promise::fifo,
          Promise::shared,        Promise::modes,
          Promise::ranges,        Promise::semaphore,
          Promise::several_names, Promise::upgrade,
          Promise::downgrade,     Promise::reentry,
          Promise::one_lease,     Promise::deadlocks,
          Promise::watches,       Promise::outlives_process};
}

Bounds ClusterBackend::bounds() const noexcept {
  // As many ids as fit into one message.
  return {.renewals_max = 4000};
}

void ClusterBackend::start(Listener& listener) {
  boost::asio::post(loop_, [this, &listener] { courier_->listen(listener); });
}

void ClusterBackend::post(Errand errand) {
  {
    const sys::MutexGuard guard(mutex_);
    posted_.push_back(std::move(errand));
    if (posted_.size() > 1) {
      return;
    }
  }
  boost::asio::post(loop_, [this] {
    std::vector<Errand> taken;
    {
      const sys::MutexGuard guard(mutex_);
      taken.swap(posted_);
    }
    courier_->run(std::move(taken));
  });
}

void ClusterBackend::grant_lease(LeaseRequest request, Done<void> done) {
  Errand errand{.done = std::move(done)};
  auto& grant = *errand.operation.mutable_grant_lease();
  grant.set_id(request.id.get());
  grant.set_request_id(grant_request);
  grant.set_ttl_ms(static_cast<std::uint64_t>(request.ttl.count()));
  post(std::move(errand));
}

void ClusterBackend::renew_leases(std::vector<LeaseId> leases, Done<Renewed> done) {
  Errand errand{.done = std::move(done)};
  auto& renew = *errand.operation.mutable_renew_leases();
  for (const auto lease : leases) {
    renew.add_ids(lease.get());
  }
  post(std::move(errand));
}

void ClusterBackend::revoke_lease(LeaseId lease, Done<void> done) {
  Errand errand{.done = std::move(done)};
  errand.operation.mutable_revoke_lease()->set_id(lease.get());
  post(std::move(errand));
}

void ClusterBackend::acquire(AcquireRequest request, Done<Granted> done) {
  Errand errand{.done = std::move(done)};
  write(request, *errand.operation.mutable_acquire());
  post(std::move(errand));
}

void ClusterBackend::abandon(LeaseId lease, RequestId request) {
  // After what was posted before: the acquire is one of those.
  boost::asio::post(loop_, [this, lease, request] { courier_->abandon(lease, request); });
}

void ClusterBackend::release(ReleaseRequest request, Done<void> done) {
  Errand errand{.done = std::move(done)};
  write(request, *errand.operation.mutable_release());
  post(std::move(errand));
}

void ClusterBackend::downgrade(DowngradeRequest request, Done<void> done) {
  Errand errand{.done = std::move(done)};
  write(request, *errand.operation.mutable_downgrade());
  post(std::move(errand));
}

WatchId ClusterBackend::watch(WatchRequest request, Sink sink) {
  const WatchId id{++last_watch_};
  const auto begun = std::make_shared<std::promise<void>>();
  auto is_begun = begun->get_future();
  boost::asio::post(
      loop_, [this, id, begun, request = std::move(request), sink = std::move(sink)]() mutable {
        courier_->watch(id, std::move(request), std::move(sink), [begun] { begun->set_value(); });
      });
  // What happens after the call is to be told, also by another client. Our own thread cannot wait.
  if (std::this_thread::get_id() != thread_.get_id()) {
    is_begun.wait_for(farewell_);
  }
  return id;
}

void ClusterBackend::unwatch(WatchId watch) {
  boost::asio::post(loop_, [this, watch] { courier_->unwatch(watch); });
}

void ClusterBackend::holders(std::string name, Done<std::vector<Holder>> done) {
  boost::asio::post(loop_, [this, name = std::move(name), done = std::move(done)]() mutable {
    courier_->holders(name, std::move(done));
  });
}

}  // namespace tenure::backends::cluster
