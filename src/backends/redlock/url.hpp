#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "backends/redis/server_options.hpp"
#include "backends/url.hpp"

namespace tenure::backends::redlock {

/// Maximum number of voting servers.
inline constexpr std::size_t servers_max = 15;

/// Voting servers, and the options of the votes.
struct Deployment {
  /// Connection options of each server.
  std::vector<redis::ServerOptions> servers{};

  /// Longest wait for the reply of one server, and never more than a tenth of the TTL; the other
  /// servers decide without it. Raise it if the round trip takes longer.
  std::chrono::milliseconds node_timeout{100};

  /// Longest delay between two attempts of a waiter; the first delays are shorter, and all are
  /// jittered. A release notifies a waiter, so the delay matters only after a lost notification.
  std::chrono::milliseconds retry_delay{50};

  /// Time after its start during which a server has no vote, because it may have lost one. Absent:
  /// the TTL of the requested lock or of its holder, whichever is longer. Zero is safe only for
  /// servers that lose nothing (appendfsync always).
  std::optional<std::chrono::milliseconds> restart_wait{};

  /// Number of votes that win.
  [[nodiscard]] std::size_t quorum() const noexcept { return servers.size() / 2 + 1; }
};

/// Parses redlock://[user[:password]@]host[:port],host[:port],…[/database][?…]; redlocks:// always
/// uses TLS. Removes the parts that it has consumed from `url`. Errors are `invalid_argument` with
/// the position in the URL.
[[nodiscard]] Result<Deployment> deployment_from(Url& url, std::chrono::milliseconds timeout);

/// Warning about a number of servers that works but is a poor choice.
[[nodiscard]] std::optional<std::string> warning_about(const Deployment& deployment);

}  // namespace tenure::backends::redlock
