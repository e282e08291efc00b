#pragma once

/// @file
/// The whole public interface, except the fences of databases.

/// @namespace tenure
/// Locks across threads, processes and machines. Start with connect() for named locks of a lock
/// service, LockManager for locks inside one process, and Fence for storage that rejects the writes
/// of former holders.

#include <tenure/client/awaitable.hpp>
#include <tenure/client/client.hpp>
#include <tenure/client/election.hpp>
#include <tenure/client/guard.hpp>
#include <tenure/client/lease.hpp>
#include <tenure/client/mutex.hpp>
#include <tenure/client/options.hpp>
#include <tenure/client/rw_lock.hpp>
#include <tenure/client/semaphore.hpp>
#include <tenure/client/std_lockable.hpp>
#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/format.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_manager/deadlock.hpp>
#include <tenure/lock_manager/lock_manager.hpp>
#include <tenure/lock_manager/options.hpp>
#include <tenure/lock_manager/snapshot.hpp>
#include <tenure/lock_manager/target.hpp>
#include <tenure/lock_manager/text.hpp>
#include <tenure/lock_manager/transaction.hpp>
#include <tenure/lock_manager/wait_for_graph.hpp>
#include <tenure/lock_mode.hpp>
