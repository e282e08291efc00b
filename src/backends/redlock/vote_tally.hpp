#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/redlock/url.hpp"

namespace tenure::backends::redlock {

/// Result of a call on one server.
enum class Verdict : std::uint8_t {
  /// No reply yet.
  open,
  /// Vote for the caller.
  yes,
  /// Vote against the caller.
  no,
  /// Unknown: the server could not be reached, or did not reply in time.
  failed,
};

/// Tally of one quorum call.
///
/// INVARIANT: two calls that were both won share a server that voted yes in both.
class VoteTally {
 public:
  /// REQUIRES: 1 to servers_max.
  explicit VoteTally(std::size_t servers) : servers_(servers) {}

  /// Records the verdict of a server; the first one counts.
  void cast(std::size_t server, Verdict verdict) {
    if (verdicts_[server] == Verdict::open) {
      verdicts_[server] = verdict;
      ++counts_[static_cast<std::size_t>(verdict)];
    }
  }
  /// Verdict of a server.
  [[nodiscard]] Verdict of(std::size_t server) const { return verdicts_[server]; }
  /// Number of servers.
  [[nodiscard]] std::size_t servers() const noexcept { return servers_; }
  /// Number of votes that win.
  [[nodiscard]] std::size_t quorum() const noexcept { return servers_ / 2 + 1; }
  /// Number of votes for the caller.
  [[nodiscard]] std::size_t yes() const noexcept { return count(Verdict::yes); }
  /// Number of votes against the caller.
  [[nodiscard]] std::size_t no() const noexcept { return count(Verdict::no); }
  /// Number of servers with an unknown result.
  [[nodiscard]] std::size_t failed() const noexcept { return count(Verdict::failed); }
  /// Number of servers without a reply.
  [[nodiscard]] std::size_t open() const noexcept { return servers_ - yes() - no() - failed(); }

  /// Enough servers have not failed for a win; a call that is not won then was refused.
  [[nodiscard]] bool is_quorum_reachable() const noexcept {
    return servers_ - failed() >= quorum();
  }
  /// A quorum voted yes.
  [[nodiscard]] bool is_won() const noexcept { return yes() >= quorum(); }
  /// The call is not won even if all remaining servers vote yes.
  [[nodiscard]] bool cannot_win() const noexcept { return yes() + open() < quorum(); }
  /// The refusals alone exclude a quorum, even if all failed servers had voted yes.
  [[nodiscard]] bool is_refused() const noexcept { return servers_ - no() < quorum(); }

 private:
  /// Number of servers with this verdict.
  [[nodiscard]] std::size_t count(Verdict verdict) const noexcept {
    return counts_[static_cast<std::size_t>(verdict)];
  }

  /// Number of servers.
  std::size_t servers_;
  /// Verdict of each server.
  std::array<Verdict, servers_max> verdicts_{};
  /// Number of servers by verdict.
  std::array<std::size_t, 4> counts_{};
};

}  // namespace tenure::backends::redlock
