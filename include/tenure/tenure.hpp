#pragma once

/// Everything at once.

#include <tenure/deadlock.hpp>
#include <tenure/error.hpp>
#include <tenure/fence.hpp>
#include <tenure/ids.hpp>
#include <tenure/key_range.hpp>
#include <tenure/lock_manager.hpp>
#include <tenure/lock_mode.hpp>
#include <tenure/lock_options.hpp>
#include <tenure/snapshot.hpp>
#include <tenure/target.hpp>
#include <tenure/text.hpp>
#include <tenure/transaction.hpp>
#include <tenure/wait_for_graph.hpp>
