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

inline constexpr std::size_t servers_max = 15;

/// The servers that vote, and how they are asked.
struct Deployment {
  std::vector<redis::ServerOptions> servers{};

  /// Longest wait for the answer of one server, and never more than a tenth of the ttl; by then the
  /// others have decided. Raise it where the way to the servers takes longer.
  std::chrono::milliseconds node_timeout{100};

  /// Longest pause between two attempts of one who waits; the first are shorter, and all jittered.
  /// Whoever gives a lock back wakes one, so it counts only where nobody does.
  std::chrono::milliseconds retry_delay{50};

  /// For so long after its start a server has no vote, since it may have forgotten one. Default:
  /// the ttl of the lock that is asked for, or of its holder. Zero is for servers that forget
  /// nothing (appendfsync always).
  std::optional<std::chrono::milliseconds> restart_wait{};

  [[nodiscard]] std::size_t quorum() const noexcept { return servers.size() / 2 + 1; }
};

/// redlock://[user[:password]@]host[:port],host[:port],…[/database][?…]; redlocks:// speaks TLS in
/// any case. Takes what it knows out of the URL. `invalid_argument` says what is wrong and where.
[[nodiscard]] Result<Deployment> deployment_from(Url& url, std::chrono::milliseconds timeout);

/// What people should know of such a choice of servers, though it works.
[[nodiscard]] std::optional<std::string> warning_about(const Deployment& deployment);

}  // namespace tenure::backends::redlock
