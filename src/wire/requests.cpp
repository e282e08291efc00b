#include "wire/requests.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "wire/items.hpp"

namespace tenure::wire {
namespace {

/// Default TTL of a lease.
constexpr std::chrono::milliseconds ttl_default = std::chrono::seconds(30);
/// Above every limit, and far from overflowing microseconds.
constexpr std::uint64_t milliseconds_max = 1'000'000'000'000;

/// Clamps, so that the conversion cannot overflow; the store rejects a TTL over its limit.
core::ClusterTime time_from(std::uint64_t milliseconds) {
  return std::chrono::milliseconds(std::min(milliseconds, milliseconds_max));
}

/// proto3 keeps unknown numbers of an enum, so a newer client can send any value.
Result<core::SelfConflict> self_conflict_from(v1::SelfConflict policy) {
  switch (policy) {
    case v1::SELF_CONFLICT_REFUSE: return core::SelfConflict::refuse;
    case v1::SELF_CONFLICT_WAIT: return core::SelfConflict::wait;
    case v1::SELF_CONFLICT_REENTER: return core::SelfConflict::reenter;
    default: break;
  }
  return fail(Errc::invalid_argument, "self_conflict: unknown value " + std::to_string(policy) +
                                          "; expected 0 (refuse), 1 (wait) or 2 (reenter)");
}

/// Fields shared by the three acquire requests.
template <class Request>
Result<core::Acquire> begin_acquire(const Request& request) {
  const auto again = self_conflict_from(request.self_conflict());
  if (!again) {
    return std::unexpected(again.error());
  }
  core::Acquire acquire{.lease = core::LeaseId(request.lease_id()),
                        .request = core::RequestId(request.request_id()),
                        .self_conflict = *again,
                        .owner = request.owner(),
                        .metadata = request.metadata()};
  // The number of items is bounded by the message size here and by a limit in the store.
  acquire.items.reserve(static_cast<std::size_t>(request.items_size()));
  for (const auto& wanted : request.items()) {
    auto item = item_from(wanted);
    if (!item) {
      return std::unexpected(std::move(item).error());
    }
    acquire.items.push_back(*std::move(item));
  }
  return acquire;
}

/// A request contains either a name or items.
template <class Request>
Result<core::Acquire> named_acquire(const Request& request) {
  auto acquire = begin_acquire(request);
  if (!acquire || request.name().empty()) {
    return acquire;
  }
  // Rejected and not merged: the intention of the client is unclear.
  if (!acquire->items.empty()) {
    return fail(Errc::invalid_argument, "name and items exclude each other");
  }
  const auto mode = mode_from(request.mode());
  if (!mode) {
    return std::unexpected(mode.error());
  }
  acquire->items.push_back({.name = request.name(), .claim = core::Whole{.mode = *mode}});
  return acquire;
}

template <class Request>
Result<core::Release> any_release(const Request& request) {
  core::Release release{.lease = core::LeaseId(request.lease_id()),
                        .request = core::RequestId(request.request_id())};
  // Both empty, or both set.
  if (request.name().empty() == (request.fencing_token() == 0)) {
    return fail(Errc::invalid_argument, "exactly one of name and fencing_token is required");
  }
  // A token identifies the hold alone; the lease is compared by the store.
  if (request.name().empty()) {
    release.what = core::FencingToken(request.fencing_token());
    return release;
  }
  core::Target target{.name = request.name()};
  // Without a range the target is a lock name; with one it is a part of a space.
  if (request.has_range()) {
    auto range = range_from(request.range());
    if (!range) {
      return std::unexpected(std::move(range).error());
    }
    target.range = *std::move(range);
  }
  release.what = std::move(target);
  return release;
}

template <class Request>
Result<core::Downgrade> any_downgrade(const Request& request) {
  core::Downgrade downgrade{.lease = core::LeaseId(request.lease_id()),
                            .request = core::RequestId(request.request_id()),
                            .token = core::FencingToken(request.fencing_token())};
  // Unlike an acquire, an unset mode keeps the default of core::Downgrade.
  if (request.mode() != v1::MODE_UNSPECIFIED) {
    const auto mode = mode_from(request.mode());
    if (!mode) {
      return std::unexpected(mode.error());
    }
    downgrade.mode = *mode;
  }
  return downgrade;
}

/// Id 0: the store chooses one. A TTL of 0 is the default.
template <class Request>
core::GrantLease any_grant(const Request& request) {
  return {.id = core::LeaseId(request.id()),
          .request = core::RequestId(request.request_id()),
          .ttl = request.ttl_ms() == 0 ? ttl_default : time_from(request.ttl_ms())};
}

}  // namespace

// The three requests differ in their fields only; they become the same command.
Result<core::Acquire> acquire_from(const v1::LockRequest& request) {
  auto acquire = named_acquire(request);
  if (acquire && request.has_timeout_ms() && request.timeout_ms() == 0) {
    // The store replies at once: an acquire request with a timeout of 0 never enters the queue.
    acquire->queue = core::Queue::skip;
  }
  return acquire;
}

Result<core::Acquire> acquire_from(const v1::TryLockRequest& request) {
  auto acquire = named_acquire(request);
  if (acquire) {
    acquire->queue = core::Queue::skip;
  }
  return acquire;
}

Result<core::Acquire> acquire_from(const v1::Acquire& request) {
  auto acquire = begin_acquire(request);
  if (acquire && request.has_timeout_ms() && request.timeout_ms() == 0) {
    acquire->queue = core::Queue::skip;
  }
  return acquire;
}

Result<core::Release> release_from(const v1::UnlockRequest& request) {
  return any_release(request);
}

Result<core::Release> release_from(const v1::Release& request) {
  return any_release(request);
}

Result<core::Downgrade> downgrade_from(const v1::DowngradeRequest& request) {
  return any_downgrade(request);
}

Result<core::Downgrade> downgrade_from(const v1::Downgrade& request) {
  return any_downgrade(request);
}

Result<core::Command> renewal_from(const v1::LeaseKeepAliveRequest& request) {
  if (request.has_ttl_ms() && request.more_ids_size() > 0) {
    return fail(Errc::invalid_argument, "ttl_ms applies to one lease and excludes more_ids");
  }
  if (request.has_ttl_ms()) {
    return core::SetTtl{.lease = core::LeaseId(request.id()),
                        .request = core::RequestId(request.request_id()),
                        .ttl = time_from(request.ttl_ms())};
  }
  core::RenewLeases renew;
  renew.leases.emplace_back(request.id());
  for (const auto id : request.more_ids()) {
    renew.leases.emplace_back(id);
  }
  return renew;
}

core::SetTtl set_ttl_from(const v1::SetTtl& request) {
  return {.lease = core::LeaseId(request.lease_id()),
          .request = core::RequestId(request.request_id()),
          .ttl = time_from(request.ttl_ms())};
}

core::GrantLease grant_from(const v1::LeaseGrantRequest& request) {
  return any_grant(request);
}

core::GrantLease grant_from(const v1::GrantLease& request) {
  return any_grant(request);
}

}  // namespace tenure::wire
