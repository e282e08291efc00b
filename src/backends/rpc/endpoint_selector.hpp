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

/// What a server says of where another one is. Nothing if it cannot be meant: no host, no port, or
/// an address that only a listener can have, such as 0.0.0.0.
[[nodiscard]] std::optional<Endpoint> endpoint_from(std::string_view text);

/// Which server to try next, and when: the leader that another one named, at once; else one after
/// the other, those of the URL and those that led before. The first round is without pauses, later
/// ones have pauses that grow.
///
/// A server that failed a moment ago is not gone to because another one names it: until a new
/// leader is elected, the others name the one that has died. Nor are more than a few names followed
/// one after the other, so that servers that name each other do not keep us busy.
class EndpointSelector {
 public:
  using Clock = std::chrono::steady_clock;
  using Delay = net::Backoff::Delay;

  static constexpr std::size_t redirects_max = 4;  ///< Names followed without a pause in between.
  static constexpr std::size_t learned_max = 8;    ///< Servers remembered besides those of the URL.
  static constexpr std::chrono::milliseconds failure_cooldown{1000};
  static constexpr std::chrono::milliseconds retry_delay_min{20};
  static constexpr std::chrono::milliseconds retry_delay_max{1000};

  /// REQUIRES: at least one.
  explicit EndpointSelector(std::vector<Endpoint> listed, sys::RandomSource random = sys::random_id)
      : listed_(std::move(listed)),
        backoff_({.min = retry_delay_min, .max = retry_delay_max}, random) {}

  struct Attempt {
    Endpoint server;
    Delay delay{};  ///< Delay before the attempt, with jitter.
  };
  [[nodiscard]] Attempt next();

  /// Somebody says that this one leads. True: it is the next.
  bool redirect_to(const Endpoint& leader, Clock::time_point now);
  /// A pause was made where we are: names may be followed again.
  void reset_redirects() { redirects_ = 0; }
  /// It cannot be reached, or does not answer any more.
  void mark_failed(const Endpoint& server, Clock::time_point now);
  /// It leads, and answers.
  void mark_healthy(const Endpoint& server);
  /// How many servers it knows.
  [[nodiscard]] std::size_t size() const { return listed_.size() + learned_.size(); }

 private:
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
  Delay round_delay_{};         ///< Delay before each attempt of the current round.
  std::size_t next_index_ = 0;  ///< In the round.
  std::size_t attempts_ = 0;    ///< Since we last arrived.
  std::size_t redirects_ = 0;
};

}  // namespace tenure::backends
