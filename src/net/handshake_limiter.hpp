#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <absl/container/flat_hash_map.h>

#include "net/shares.hpp"

namespace tenure::net {

/// Bounds the TLS handshakes of a server: how many are in progress, and how many begin in one
/// second, in total and by network. Not thread safe.
class HandshakeLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    /// A handshake in progress takes about 75 KiB.
    Shares::Limits in_progress{.total_max = 512, .each_max = 128};
    /// A handshake takes 0.3 ms of a core with ECDSA, 2 ms with RSA.
    Shares::Limits per_second{.total_max = 1000, .each_max = 500};
  };

  explicit HandshakeLimiter(Limits limits) : limits_(limits), in_progress_(limits.in_progress) {}

  /// A slot for a handshake that begins now, held until it ends; nothing if a limit is reached.
  [[nodiscard]] std::optional<Shares::Share> admit(const std::string& network,
                                                   Clock::time_point now);

 private:
  const Limits limits_;
  Shares in_progress_;
  /// Present second, and the handshakes that began in it. INVARIANT: no more networks than
  /// `per_second.total_max`.
  Clock::time_point second_{};
  std::size_t begun_ = 0;
  absl::flat_hash_map<std::string, std::size_t> begun_by_network_;
};

}  // namespace tenure::net
