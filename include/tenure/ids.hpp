#pragma once

#include <cstdint>

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

}  // namespace tenure
