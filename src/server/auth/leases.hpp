#pragma once

#include <cstddef>
#include <vector>

#include "core/lease_table.hpp"
#include "server/auth/access.hpp"

/// Visibility of leases: with `read` on the empty prefix all leases, otherwise those of the own
/// user.
namespace tenure::server::auth {

/// Visibility only; use of a foreign lease requires `admin` (Principal::is_foreign).
[[nodiscard]] bool is_visible(const Access& access, const core::Lease& lease);

struct LeaseRange {
  core::LeaseId after{};
  std::size_t limit = 0;
};
struct LeaseList {
  std::vector<const core::Lease*> leases{};  ///< Sorted by id.
  bool has_more = false;                     ///< Another page follows.
};
/// First visible leases with an id greater than `range.after`. The cost depends on the number of
/// visible leases, not of all leases. A user without the right to read all names sees the leases of
/// 10,000 of its clients at most.
[[nodiscard]] LeaseList visible_leases_after(const core::LeaseTable& table, const Access& access,
                                             const LeaseRange& range);

}  // namespace tenure::server::auth
