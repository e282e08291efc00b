#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "tenure/v1/session.pb.h"

namespace tenure::backends::tenured {

/// Registry of the holds of this client, by lease: the content of ConfirmHolds after the cluster
/// was restored from a backup. A hold is registered from its grant to its last release. Not thread
/// safe.
class KnownHolds {
 public:
  /// Registers a granted hold, or the new count or token of a known one.
  void granted(const v1::Acquire& acquire, const v1::Granted& granted);
  /// Counts one release; the last one removes the hold.
  void released(const v1::Release& release);
  /// Forgets a hold that an operator force-released.
  void force_released(std::uint64_t lease, std::uint64_t token);
  /// Removes all holds of a lease that has ended.
  void lease_ended(std::uint64_t lease) { leases_.erase(lease); }

  /// Tokens of the lease, each repeated by its reentry count.
  [[nodiscard]] std::vector<std::uint64_t> tokens(std::uint64_t lease) const;

 private:
  /// Hold as the client knows it.
  struct Known {
    std::uint64_t token = 0;
    std::uint32_t count = 1;
    /// Name and range of the first item; identifies a hold whose token an upgrade replaced.
    std::string resource{};
  };

  /// Removes a hold whatever its count.
  void erase(std::uint64_t lease, std::uint64_t token);

  /// Holds by lease; a lease without holds has no entry.
  absl::flat_hash_map<std::uint64_t, std::vector<Known>> leases_;
};

}  // namespace tenure::backends::tenured
