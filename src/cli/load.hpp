#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tenure/client/client.hpp>

#include "cli/latencies.hpp"

namespace tenure::cli {

/// Operation that each client repeats.
enum class Workload : std::uint8_t {
  mutex,     ///< Exclusive lock and unlock.
  shared,    ///< Shared lock and unlock.
  handover,  ///< Contended lock: time from unlock() to the grant of the next waiter.
  lease,     ///< Grant and revoke of a lease.
};

/// Closed-loop load: each client sends the next request after the reply to the last one. A slow
/// service lowers the rate instead of building a queue of requests, so a latency does not include
/// the time of earlier requests of the same client.
struct Load {
  Workload workload = Workload::mutex;
  std::size_t clients = 8;
  std::size_t names = 8;  ///< Number of names. Client i uses i, i + clients, …; with fewer names
                          ///< than clients, i % names.
  std::chrono::milliseconds time{5000};
  std::uint64_t count = 0;  ///< Total operations of all clients; 0: no limit but the time.
  std::chrono::milliseconds ttl = LockOptions{}.ttl;
  std::string prefix{};  ///< Prefix of the names.
};

/// Measurements, final or so far.
struct LoadFigures {
  std::chrono::nanoseconds took{};
  Latencies first{};   ///< lock(), or what the workload measures.
  Latencies second{};  ///< unlock(), or revoke(); none for a hand-over.
  std::map<std::string, std::uint64_t, std::less<>> errors{};  ///< Number of errors by code.
  std::optional<Error> first_error{};
};

/// Observer of a running load, called every `every`.
struct LoadWatch {
  std::chrono::milliseconds every{200};
  std::function<void(const LoadFigures&)> tell{};
};
/// Runs the load until the time or count is reached, `stop` is requested, or an error is permanent.
/// Releases all locks at the end. Blocks. One thread for each client; the clients share the
/// connections in turn. The callback of `watch` runs on the calling thread. REQUIRES: check(load)
/// succeeded.
[[nodiscard]] LoadFigures run_load(const std::vector<Client>& connections, const Load& load,
                                   const LoadWatch& watch, std::stop_token stop);

/// Validates the parameters. The error names the parameter.
[[nodiscard]] Result<void> check(const Load& load);

}  // namespace tenure::cli
