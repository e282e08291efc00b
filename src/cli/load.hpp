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

/// What a client of a load does again and again.
enum class Chore : std::uint8_t {
  mutex,     ///< Takes a lock of its own, or of few, and gives it back.
  shared,    ///< The same beside others who share it.
  handover,  ///< Waits for a lock that others have: how long from unlock() to the next holder?
  lease,     ///< Begins a lease and ends it.
};

/// Clients in a closed loop: each asks again when it has its answer.
struct Load {
  Chore chore = Chore::mutex;
  std::size_t clients = 8;
  std::size_t names =
      8;  ///< Client i has the names i, i + clients, …; if there are fewer: i % names.
  std::chrono::milliseconds time{5000};
  std::uint64_t count = 0;  ///< Of all clients together; 0: as many as there is time for.
  std::chrono::milliseconds ttl{10'000};
  std::string prefix{};  ///< Of the names.
};

/// What came of it, or has so far.
struct LoadFigures {
  std::chrono::nanoseconds took{};
  Latencies first{};   ///< lock(), or what the chore measures.
  Latencies second{};  ///< unlock(), or revoke(); none for a hand-over.
  std::map<std::string, std::uint64_t, std::less<>> errors{};  ///< By their names.
  std::optional<Error> first_error{};
};

/// Does it, until time or count is over, or `stop` is requested. `watch` is told how it goes, every
/// `LoadWatch::every`. All that was taken is given back at the end. What can never succeed ends it.
struct LoadWatch {
  std::chrono::milliseconds every{200};
  std::function<void(const LoadFigures&)> tell{};
};
[[nodiscard]] LoadFigures run_load(const std::vector<Client>& connections, const Load& load,
                                   const LoadWatch& watch, std::stop_token stop);

/// `invalid_argument`: this cannot be measured.
[[nodiscard]] Result<void> check(const Load& load);

}  // namespace tenure::cli
