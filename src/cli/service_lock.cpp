#include "cli/service_lock.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/output.hpp"
#include "sys/random.hpp"
#include "tenure/v1/lock.pb.h"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Interval of the checks whether an operator has released the hold.
constexpr milliseconds check_interval{1000};
/// Longest wait without --wait. Attempts on other servers continue as long, so a failover does not
/// end the wait.
constexpr std::chrono::hours wait_max{24 * 365};

/// Why a request was not granted, as the library reports it.
Errc code_of(v1::Reason reason) {
  switch (reason) {
    case v1::REASON_TIMED_OUT: return Errc::timed_out;
    case v1::REASON_CANCELLED: return Errc::cancelled;
    case v1::REASON_DEADLOCK: return Errc::deadlock;
    default: return Errc::would_block;
  }
}

/// Copies the items into a request, with the key prefix of the URL.
template <class Request>
Request request_for(const Service& service, const AcquireSpec& spec, LeaseId lease,
                    const std::string& owner) {
  Request request;
  request.set_lease_id(lease.get());
  request.set_owner(owner);
  request.set_metadata(spec.metadata);
  // Makes the request idempotent: Service repeats it after a failover.
  request.set_request_id(sys::random_id());
  for (const auto& item : spec.items) {
    auto* added = request.add_items();
    *added = item;
    added->set_name(service.with_prefix(item.name()));
  }
  return request;
}

/// Hold of tenured under a lease of the library.
class LeasedLock final : public HeldLock {
 public:
  LeasedLock(Lease lease, FencingToken token, Service service, std::size_t items)
      : lease_(std::move(lease)),
        token_(token),
        service_(std::move(service)),
        items_(items),
        on_lease_end_(lease_.lost(), [this] { loss_.request_stop(); }),
        check_([this](const std::stop_token& stop) { check_hold(stop); }) {}
  ~LeasedLock() override { stop_checks(); }

  [[nodiscard]] FencingToken token() const override { return token_; }
  [[nodiscard]] std::stop_token lost() const override { return loss_.get_token(); }
  [[nodiscard]] bool is_lost() const override {
    return loss_.stop_requested() || !lease_.is_alive();
  }
  [[nodiscard]] std::chrono::steady_clock::time_point valid_until() const override {
    return lease_.valid_until();
  }
  [[nodiscard]] Result<void> unlock() override {
    stop_checks();
    if (loss_.stop_requested()) {
      return fail(Errc::lease_lost, "the lock was released by an operator, or its lease ended");
    }
    // Releases everything under the lease.
    return lease_.revoke();
  }

 private:
  /// Main function of the thread: reports a hold that the service no longer counts.
  void check_hold(const std::stop_token& stop) {
    service_.cancel_with(stop);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any ended;
    while (!ended.wait_for(lock, stop, check_interval, [] { return false; }) &&
           !stop.stop_requested()) {
      if (is_gone()) {
        loss_.request_stop();
        return;
      }
    }
  }

  /// Whether the service replies that the lease does not have the hold. No reply is no loss: the
  /// client library ends the lease in time.
  [[nodiscard]] bool is_gone() {
    v1::LeaseTimeToLiveRequest request;
    request.set_id(lease_.id().get());
    request.set_keys(true);
    const auto reply =
        service_.ask<v1::LeaseTimeToLiveResponse>("LockService/LeaseTimeToLive", request);
    if (!reply) {
      return reply.error() == Errc::lease_lost;
    }
    const auto held = std::ranges::count_if(
        reply->held(), [this](const auto& one) { return one.fencing_token() == token_.get(); });
    return static_cast<std::size_t>(held) < items_;
  }

  void stop_checks() {
    check_.request_stop();
    if (check_.joinable()) {
      check_.join();
    }
  }

  Lease lease_;
  FencingToken token_;
  /// Used by the thread only.
  Service service_;
  std::size_t items_;
  std::stop_source loss_{};
  std::stop_callback<std::function<void()>> on_lease_end_;
  /// Declared last: it uses the members above.
  std::jthread check_;
};

}  // namespace

Result<FencingToken> lock_items(Service& service, const AcquireSpec& spec, LeaseId lease,
                                const std::string& owner) {
  const bool may_wait = !spec.wait || spec.wait->count() > 0;
  const auto began = std::chrono::steady_clock::now();
  Result<v1::LockResponse> reply = fail(Errc::unavailable, "no reply");
  if (may_wait) {
    auto request = request_for<v1::LockRequest>(service, spec, lease, owner);
    if (spec.wait) {
      request.set_timeout_ms(static_cast<std::uint64_t>(spec.wait->count()));
    }
    // The reply comes at the end of the wait.
    constexpr milliseconds reply_time{5000};
    reply = service.ask<v1::LockResponse>(
        "LockService/Lock", request, {.timeout = spec.wait ? *spec.wait + reply_time : wait_max});
  } else {
    reply = service.ask<v1::LockResponse>(
        "LockService/TryLock", request_for<v1::TryLockRequest>(service, spec, lease, owner));
  }
  // A failover restarts the timeout at the server, but not that of the user.
  if (!reply && reply.error() == Errc::unavailable && spec.wait &&
      std::chrono::steady_clock::now() >= began + *spec.wait) {
    return fail(Errc::timed_out, reply.error().detail);
  }
  if (!reply) {
    return std::unexpected(std::move(reply).error());
  }
  if (!reply->acquired()) {
    return fail(code_of(reply->reason()), reply->detail());
  }
  return FencingToken{reply->fencing_token()};
}

Result<std::unique_ptr<HeldLock>> lock_items(const Client& client, const AcquireSpec& spec,
                                             const Arguments& arguments, std::stop_token cancel) {
  auto service = Service::open(arguments);
  if (!service) {
    return std::unexpected(std::move(service).error());
  }
  // First, so that an unreachable service is noticed before a wait without limit.
  auto lease = client.lease({.ttl = spec.ttl});
  if (!lease) {
    return std::unexpected(std::move(lease).error());
  }
  // The end of the lease ends the wait, too: the service counts it no longer.
  std::stop_source end_of_wait;
  const std::function<void()> end = [&] { end_of_wait.request_stop(); };
  const std::stop_callback on_cancel(std::move(cancel), end);
  const std::stop_callback on_lease_end(lease->lost(), end);
  service->cancel_with(end_of_wait.get_token());
  const auto token = lock_items(*service, spec, lease->id(), client.owner());
  // Nothing was held, so this is no loss of a lock.
  if (!token && (token.error() == Errc::lease_lost || !lease->is_alive())) {
    return fail(Errc::unavailable, "the lease ended while the request waited; retry");
  }
  if (!token) {
    return std::unexpected(token.error());
  }
  return std::make_unique<LeasedLock>(*std::move(lease), *token, *std::move(service),
                                      spec.items.size());
}

}  // namespace tenure::cli
