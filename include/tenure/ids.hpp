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

/// What the holder of a lock shows to storage: a later holder carries a larger one. 0 is no token.
/// See fence.hpp.
using FencingToken = Strong<std::uint64_t, struct HolderTokenTag>;

}  // namespace tenure
