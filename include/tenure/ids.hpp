#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include <tenure/strong.hpp>

namespace tenure {

/// A transaction of the in-process LockManager. The caller gives it meaning; unless a transaction
/// says otherwise, a larger id stands for a younger one.
using TxnId = Strong<std::uint64_t, struct TxnIdTag>;

/// A thing to lock, or a space of keys, by number. The caller gives it meaning. Two things that
/// share a number share a lock; things that have names are better locked by name.
using ResourceId = Strong<std::uint64_t, struct ResourceIdTag>;

/// A moment in the history of a lock service. Every change takes the next one.
using Revision = Strong<std::uint64_t, struct ServiceRevisionTag>;

/// Proof of order between the holders of one lock: a later holder carries a larger one. Send it
/// with every write and let the storage refuse smaller ones. 0 is no token.
using FencingToken = Strong<std::uint64_t, struct HolderTokenTag>;

/// What holds hang on: they live and end together with it. 0 is no lease.
using LeaseId = Strong<std::uint64_t, struct HolderLeaseTag>;

/// One request of a lease, chosen by the client; the same id again is a retry. 0 is no id.
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
