#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/redlock/url.hpp"

namespace tenure::backends::redlock {

/// What one server said to a question.
enum class Verdict : std::uint8_t {
  open,  ///< Nothing yet.
  yes,
  no,
  failed,  ///< Nobody knows: it could not be asked, or did not answer in time.
};

/// The answers of all servers to one question.
///
/// INVARIANT: two questions that were both won have a server in common that said yes to both.
class VoteTally {
 public:
  /// REQUIRES: 1 to servers_max.
  explicit VoteTally(std::size_t servers) : servers_(servers) {}

  /// The first verdict of a server counts.
  void cast(std::size_t server, Verdict verdict) {
    if (verdicts_[server] == Verdict::open) {
      verdicts_[server] = verdict;
      ++counts_[static_cast<std::size_t>(verdict)];
    }
  }
  [[nodiscard]] Verdict of(std::size_t server) const { return verdicts_[server]; }
  [[nodiscard]] std::size_t servers() const noexcept { return servers_; }
  [[nodiscard]] std::size_t quorum() const noexcept { return servers_ / 2 + 1; }
  [[nodiscard]] std::size_t yes() const noexcept { return count(Verdict::yes); }
  [[nodiscard]] std::size_t no() const noexcept { return count(Verdict::no); }
  [[nodiscard]] std::size_t failed() const noexcept { return count(Verdict::failed); }
  [[nodiscard]] std::size_t open() const noexcept { return servers_ - yes() - no() - failed(); }

  /// As far as is known: it is not for want of servers if it is not won.
  [[nodiscard]] bool is_quorum_there() const noexcept { return servers_ - failed() >= quorum(); }
  [[nodiscard]] bool is_won() const noexcept { return yes() >= quorum(); }
  /// Whatever the others say, it will not be won.
  [[nodiscard]] bool cannot_win() const noexcept { return yes() + open() < quorum(); }
  /// So many say no that no quorum can ever say yes, though nobody knows what the others think.
  [[nodiscard]] bool is_refused() const noexcept { return servers_ - no() < quorum(); }

 private:
  [[nodiscard]] std::size_t count(Verdict verdict) const noexcept {
    return counts_[static_cast<std::size_t>(verdict)];
  }

  std::size_t servers_;
  std::array<Verdict, servers_max> verdicts_{};
  std::array<std::size_t, 4> counts_{};
};

}  // namespace tenure::backends::redlock
