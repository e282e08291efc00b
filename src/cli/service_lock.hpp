#pragma once

#include <memory>
#include <stop_token>

#include "cli/acquire.hpp"
#include "cli/held_lock.hpp"
#include "cli/service.hpp"

namespace tenure::cli {

/// Acquires AcquireSpec::items under a lease of the client library, which renews it. For what the
/// library does not offer: modes, key ranges and paths of tenured. The hold is checked every
/// second, so a forced release is noticed within that time.
[[nodiscard]] Result<std::unique_ptr<HeldLock>> lock_items(const Client& client,
                                                           const AcquireSpec& spec,
                                                           const Arguments& arguments,
                                                           std::stop_token cancel);

/// Acquires AcquireSpec::items under an existing lease and returns the fencing token. The hold
/// belongs to the lease and outlives this process.
[[nodiscard]] Result<FencingToken> lock_items(Service& service, const AcquireSpec& spec,
                                              LeaseId lease, const std::string& owner);

}  // namespace tenure::cli
