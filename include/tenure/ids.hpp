#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include <tenure/strong.hpp>

namespace tenure {

/// Id of a transaction of the in-process LockManager, chosen by the caller. By default, a larger id
/// means a younger transaction.
using TxnId = Strong<std::uint64_t, struct TxnIdTag>;

/// Number of a resource, or of a space of keys, chosen by the caller. Resources with the same
/// number share a lock.
using ResourceId = Strong<std::uint64_t, struct ResourceIdTag>;

/// Revision of a lock service: a counter that every change increments.
using Revision = Strong<std::uint64_t, struct ServiceRevisionTag>;

/// Fencing token: every grant of a lock has a larger one than the grant before. Send it with every
/// write, and let the storage reject smaller ones. 0 is no token.
using FencingToken = Strong<std::uint64_t, struct HolderTokenTag>;

/// Id of a lease, which holds are attached to and end with. 0 is no lease.
using LeaseId = Strong<std::uint64_t, struct HolderLeaseTag>;

/// Id of a request within its lease, chosen by the client. Repeating it makes a retry idempotent. 0
/// is no id.
using RequestId = Strong<std::uint64_t, struct LeaseRequestTag>;

/// Identifies a request among those of all leases, for example a wait or a hold. Ordered by lease,
/// then by request.
struct RequestKey {
  LeaseId lease{};      ///< Lease that the request belongs to.
  RequestId request{};  ///< Number of the request, unique within the lease.

  friend auto operator<=>(const RequestKey&, const RequestKey&) = default;
  /// Hash for Abseil's containers, which seed it: clients choose both numbers, and must not be able
  /// to make the keys of a server collide.
  template <class H>
  friend H AbslHashValue(H state, const RequestKey& key) {
    return H::combine(std::move(state), key.lease.get(), key.request.get());
  }
};

}  // namespace tenure
