#pragma once

/// @file
/// Everything at once.

/// @namespace tenure
/// Locks from threads to clusters. connect() is where named locks begin, LockManager where those
/// inside a process do, Fence where storage refuses whoever comes too late.

#include <tenure/acquiring.hpp>
#include <tenure/client.hpp>
#include <tenure/deadlock.hpp>
#include <tenure/election.hpp>
#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/guard.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lease.hpp>
#include <tenure/lock_manager.hpp>
#include <tenure/lock_mode.hpp>
#include <tenure/lock_options.hpp>
#include <tenure/mutex.hpp>
#include <tenure/options.hpp>
#include <tenure/rw_lock.hpp>
#include <tenure/semaphore.hpp>
#include <tenure/snapshot.hpp>
#include <tenure/std_lockable.hpp>
#include <tenure/target.hpp>
#include <tenure/text.hpp>
#include <tenure/transaction.hpp>
#include <tenure/wait_for_graph.hpp>
#include <tenure/watch.hpp>
