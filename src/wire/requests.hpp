#pragma once

#include <cstdint>

#include <tenure/error.hpp>

#include "core/command.hpp"
#include "tenure/v1/lease.pb.h"
#include "tenure/v1/lock.pb.h"
#include "tenure/v1/session.pb.h"

namespace tenure::wire {

/// Decodes requests into store commands. `invalid_argument` names the invalid field; the store
/// checks sizes, names and limits. A LockRequest with timeout 0 does not wait; the caller enforces
/// any other timeout.
[[nodiscard]] Result<core::Acquire> acquire_from(const v1::LockRequest& request);
[[nodiscard]] Result<core::Acquire> acquire_from(const v1::TryLockRequest& request);
/// Names its items only; the other two requests may have a single name instead.
[[nodiscard]] Result<core::Acquire> acquire_from(const v1::Acquire& request);

/// Names the hold by its fencing token, or by lock name and, in a space, by range.
[[nodiscard]] Result<core::Release> release_from(const v1::UnlockRequest& request);
[[nodiscard]] Result<core::Release> release_from(const v1::Release& request);

/// Default mode: shared.
[[nodiscard]] Result<core::Downgrade> downgrade_from(const v1::DowngradeRequest& request);
[[nodiscard]] Result<core::Downgrade> downgrade_from(const v1::Downgrade& request);

/// Renewal of leases, or a TTL change of one lease.
/// `invalid_argument`: a TTL together with several leases.
[[nodiscard]] Result<core::Command> renewal_from(const v1::LeaseKeepAliveRequest& request);
/// Cannot fail: the store checks the TTL against its limits.
[[nodiscard]] core::SetTtl set_ttl_from(const v1::SetTtl& request);

/// Command without the client's name and address, which the caller adds.
[[nodiscard]] core::GrantLease grant_from(const v1::LeaseGrantRequest& request);
[[nodiscard]] core::GrantLease grant_from(const v1::GrantLease& request);

}  // namespace tenure::wire
