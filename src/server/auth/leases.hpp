#pragma once

#include <cstddef>
#include <vector>

#include "core/lease_table.hpp"
#include "server/auth/access.hpp"

/// Whose leases somebody sees: who may read "" all of them, everybody else his own.
namespace tenure::server::auth {

[[nodiscard]] bool may_see(const Access& access, const core::Lease& lease);

struct LeaseRange {
  core::LeaseId after{};
  std::size_t limit = 0;
};
struct LeaseList {
  std::vector<const core::Lease*> leases{};  ///< By id.
  bool has_more = false;                     ///< Behind them.
};
/// The first of those behind an id that it may see. Costs what it may see, not all there are.
[[nodiscard]] LeaseList leases_behind(const core::LeaseTable& table, const Access& access,
                                      const LeaseRange& range);

}  // namespace tenure::server::auth
