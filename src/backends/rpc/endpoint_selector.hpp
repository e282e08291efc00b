#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/url.hpp"
#include "net/backoff.hpp"
#include "sys/jitter.hpp"

namespace tenure::backends {

/// Parses an endpoint from a redirect. Empty if it is unusable: no host, no port, or an address
/// that only a listener can have, such as 0.0.0.0.
[[nodiscard]] std::optional<Endpoint> endpoint_from(std::string_view text);

/// Endpoint selection policy. A redirect to the leader is tried next and at once; otherwise the
/// servers are tried in turn: those of the URL and former leaders. The first round has no delays;
/// later rounds back off with jitter.
///
/// A redirect to a server that failed within the last second is ignored: until a new leader is
/// elected, the other members keep naming the dead one. The number of consecutive redirects is
/// bounded, so that servers that name each other cannot keep a client busy.
///
/// Pure policy without I/O or clock. Not thread safe.
class EndpointSelector {
 public:
  using Clock = std::chrono::steady_clock;
  using Delay = net::Backoff::Delay;

  /// Consecutive redirects without a delay.
  static constexpr std::size_t redirects_max = 4;
  /// Former leaders remembered in addition to the URL.
  static constexpr std::size_t learned_max = 8;
  static constexpr std::chrono::milliseconds failure_cooldown{1000};
  static constexpr std::chrono::milliseconds retry_delay_min{20};
  static constexpr std::chrono::milliseconds retry_delay_max{1000};

  /// REQUIRES: at least one endpoint.
  explicit EndpointSelector(std::vector<Endpoint> listed, sys::RandomSource random = sys::random_id)
      : listed_(std::move(listed)),
        backoff_({.min = retry_delay_min, .max = retry_delay_max}, random) {}

  /// Next server to try.
  struct Attempt {
    Endpoint server;
    /// Delay before the attempt, with jitter.
    Delay delay{};
  };
  [[nodiscard]] Attempt next();

  /// Handles a redirect. Returns true if `leader` is the next endpoint.
  bool redirect_to(const Endpoint& leader, Clock::time_point now);
  /// Resets the count of consecutive redirects, after the caller has paused.
  void reset_redirects() { redirects_ = 0; }
  /// Records that the server is unreachable or stopped responding.
  void mark_failed(const Endpoint& server, Clock::time_point now);
  /// Records that the server leads and responds: clears its failure and the backoff.
  void mark_healthy(const Endpoint& server);
  /// Number of known servers.
  [[nodiscard]] std::size_t size() const { return listed_.size() + learned_.size(); }

 private:
  /// A server and the time of its failure.
  struct Failure {
    Endpoint server;
    Clock::time_point since;
  };

  [[nodiscard]] const Endpoint& at(std::size_t index) const {
    return index < listed_.size() ? listed_[index] : learned_[index - listed_.size()];
  }

  std::vector<Endpoint> listed_;
  std::vector<Endpoint> learned_;
  std::vector<Failure> recent_failures_;
  std::optional<Endpoint> redirect_target_;
  net::Backoff backoff_;
  /// Delay before each attempt of the current round.
  Delay round_delay_{};
  /// Position in the round.
  std::size_t next_index_ = 0;
  /// Attempts since the last healthy connection.
  std::size_t attempts_ = 0;
  std::size_t redirects_ = 0;
};

}  // namespace tenure::backends
