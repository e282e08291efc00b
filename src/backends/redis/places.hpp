#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/redis/commands.hpp"

namespace tenure::backends::redis {

/// Which member of which lock.
struct Spot {
  std::string_view name{};  ///< Whoever keeps a spot keeps it by the Ask that has it.
  Member member{};

  friend auto operator<=>(const Spot&, const Spot&) = default;
};

/// Where a lease stands on the server: as a member of one lock, that holds or waits.
struct Place {
  std::shared_ptr<const Ask> ask{};
  std::uint32_t uses = 0;     ///< Requests that count on it.
  bool is_confirmed = false;  ///< The server has said that it is there.
  bool is_wide = false;       ///< Others were there, too, when it was granted.
};

/// What our leases have on the server. A lease is nothing there by itself: it is renewed by
/// renewing its places, and one without any costs nothing.
class Places {
 public:
  struct Lease {
    std::chrono::milliseconds ttl{};
    absl::btree_map<Spot, Place> places{};
    std::vector<RequestId> waits{};  ///< Not answered, or in a queue.
  };

  void add(LeaseId id, std::chrono::milliseconds ttl) { leases_[id].ttl = ttl; }
  /// Null: it has ended.
  [[nodiscard]] Lease* find(LeaseId id);
  [[nodiscard]] Lease take(LeaseId id);
  [[nodiscard]] std::vector<LeaseId> all() const;

  /// Null if it is not there.
  [[nodiscard]] Place* find(LeaseId id, const Spot& spot);
  /// One more request for it. REQUIRES: the lease lives.
  void use(LeaseId id, const Member& member, const std::shared_ptr<const Ask>& ask);
  void confirm(LeaseId id, const Spot& spot);
  /// One request less; it is gone with the last.
  void unuse(LeaseId id, const Spot& spot);
  /// All of it is gone. REQUIRES: `spot` is not the place's own.
  void forget(LeaseId id, const Spot& spot);

 private:
  absl::flat_hash_map<LeaseId, Lease> leases_;
};

}  // namespace tenure::backends::redis
