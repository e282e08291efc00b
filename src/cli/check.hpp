#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tenure::cli {

/// Severity of a check of `tenure doctor`. Only `bad` makes the command fail.
enum class Finding : std::uint8_t {
  good,
  skipped,  ///< Not checked; the detail has the reason.
  warning,
  bad,
};

/// Result of one check: what was checked, what was found, and what to do about it.
struct Check {
  std::string what{};
  Finding finding = Finding::good;
  std::string detail{};
  std::string advice{};
};

/// Checks the servers of a URL of Redis, etcd or ZooKeeper: version, eviction, persistence,
/// replication, clock and permissions. What a server does not report is `skipped`. REQUIRES: the
/// URL has another scheme than tenure://.
[[nodiscard]] std::vector<Check> check_backend(const std::string& url,
                                               std::chrono::milliseconds timeout);

}  // namespace tenure::cli
