#pragma once

#include <cstdint>

#include <tenure/error.hpp>

#include "core/command.hpp"
#include "tenure/v1/lease.pb.h"
#include "tenure/v1/lock.pb.h"
#include "tenure/v1/session.pb.h"

namespace tenure::wire {

/// What a client asks for, as a command. `invalid_argument` names the field that is wrong; what
/// only the store can judge (sizes, names, limits) is left to it. A LockRequest whose timeout is 0
/// does not wait; any other timeout is the caller's to watch.
[[nodiscard]] Result<core::Acquire> acquire_from(const v1::LockRequest& request);
[[nodiscard]] Result<core::Acquire> acquire_from(const v1::TryLockRequest& request);
[[nodiscard]] Result<core::Acquire> acquire_from(const v1::Acquire& request);

[[nodiscard]] Result<core::Release> release_from(const v1::UnlockRequest& request);
[[nodiscard]] Result<core::Release> release_from(const v1::Release& request);

/// Without a mode: to shared.
[[nodiscard]] Result<core::Downgrade> downgrade_from(const v1::DowngradeRequest& request);
[[nodiscard]] Result<core::Downgrade> downgrade_from(const v1::Downgrade& request);

/// A renewal; with a ttl, of one lease.
[[nodiscard]] Result<core::Command> renewal_from(const v1::LeaseKeepAliveRequest& request);
[[nodiscard]] core::SetTtl set_ttl_from(const v1::SetTtl& request);

/// Without a client's name or address.
[[nodiscard]] core::GrantLease grant_from(const v1::LeaseGrantRequest& request);
[[nodiscard]] core::GrantLease grant_from(const v1::GrantLease& request);

}  // namespace tenure::wire
