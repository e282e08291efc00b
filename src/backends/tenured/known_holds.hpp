#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "tenure/v1/session.pb.h"

namespace tenure::backends::tenured {

/// Holds that the callers of this client have, by lease: what ConfirmHolds tells a cluster that was
/// restored from a backup. A hold is known from the moment its grant is answered until its last
/// release is asked for. Not thread safe.
class KnownHolds {
 public:
  void granted(const v1::Acquire& acquire, const v1::Granted& granted);
  void released(const v1::Release& release);
  /// Taken away by an operator.
  void force_released(std::uint64_t lease, std::uint64_t token);
  void lease_ended(std::uint64_t lease) { leases_.erase(lease); }

  /// Each token as often as it must be released.
  [[nodiscard]] std::vector<std::uint64_t> tokens(std::uint64_t lease) const;

 private:
  struct Known {
    std::uint64_t token = 0;
    std::uint32_t count = 1;
    std::string resource{};  ///< Name and range of the first item. An upgrade replaces the token.
  };

  void erase(std::uint64_t lease, std::uint64_t token);

  absl::flat_hash_map<std::uint64_t, std::vector<Known>> leases_;
};

}  // namespace tenure::backends::tenured
