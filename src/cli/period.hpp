#pragma once

#include <chrono>
#include <string>

#include <tenure/client/client.hpp>

#include "cli/acquire.hpp"

namespace tenure::cli {

/// Name of the lock that records the last start of a job with --every.
[[nodiscard]] std::string period_name(const AcquireSpec& spec);

/// Records a start of the job, for --every. The record is a lock that the service keeps for the
/// period (LockOptions::hold_at_least), also when this process ends or the leader changes. Errors
/// are those of Mutex::try_lock(): `would_block` if the last start was less than a period ago.
/// REQUIRES: the caller holds the locks of `spec`.
[[nodiscard]] Result<void> begin_period(const Client& client, const AcquireSpec& spec,
                                        std::chrono::milliseconds period);

}  // namespace tenure::cli
