#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <tenure/client/client.hpp>

#include "cli/arguments.hpp"
#include "cli/locks.hpp"

namespace tenure::cli {

/// Lock of a request that another owner holds.
struct BlockingLock {
  std::string name{};
  v1::ExplainResponse status{};
};

/// First of these locks that has a holder. None if all are free, or if the service does not answer.
[[nodiscard]] std::optional<BlockingLock> first_held(Service& service,
                                                     const std::vector<std::string>& names,
                                                     bool is_space = false);

/// "ann and 2 more". REQUIRES: the lock has a holder.
[[nodiscard]] std::string holders_label(const v1::LockStatus& lock);

/// Who blocks a request that was not granted: "backup is held by ann since 2026-11-19 14:03:12 (for
/// 12 s): schema change". Asks the service, for up to a second. Without its answer, only the names.
[[nodiscard]] std::string conflict_text(const Arguments& arguments, const Client& client,
                                        const std::vector<std::string>& names);

}  // namespace tenure::cli
