#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/strings/string_view.h>

#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/redis/commands.hpp"

namespace tenure::backends::redis {

/// Which member of which lock.
struct Spot {
  std::string_view name{};  ///< Whoever keeps a spot keeps it by the Ask that has it.
  Member member{};

  friend bool operator==(const Spot&, const Spot&) = default;
  template <class Hash>
  // NOLINTNEXTLINE(readability-identifier-naming): as Abseil looks for it.
  friend Hash AbslHashValue(Hash hash, const Spot& spot) {
    return Hash::combine(std::move(hash), absl::string_view(spot.name.data(), spot.name.size()),
                         spot.member);
  }
};

/// Where a lease stands on the server: as a member of one lock, that holds or waits.
struct Place {
  std::shared_ptr<const Ask> ask{};
  std::uint32_t uses = 0;     ///< Requests that count on it.
  bool is_confirmed = false;  ///< The server has said that it is there.
};

/// What our leases have on the server. A lease is nothing there by itself: it is renewed by
/// renewing its places, and one without any costs nothing.
class Places {
 public:
  struct Lease {
    std::chrono::milliseconds ttl{};
    /// Keeps its memory when the last of them goes: soon there is one again.
    absl::flat_hash_map<Spot, Place> places{};
    std::vector<RequestId> waits{};  ///< Not answered, or in a queue.
  };

  void add(LeaseId id, std::chrono::milliseconds ttl) { leases_[id].ttl = ttl; }
  /// Null: it has ended.
  [[nodiscard]] Lease* find(LeaseId id);
  [[nodiscard]] Lease take(LeaseId id);
  [[nodiscard]] std::vector<LeaseId> all() const;

  /// Null if it is not there.
  [[nodiscard]] Place* find(LeaseId id, const Spot& spot);
  [[nodiscard]] static Place* find(Lease& lease, const Spot& spot);
  /// One more request for it.
  static void use(Lease& lease, const Member& member, const std::shared_ptr<const Ask>& ask);
  void confirm(LeaseId id, const Spot& spot);
  /// One request less; it is gone with the last.
  static void unuse(Lease& lease, const Spot& spot);
  /// All of it is gone. REQUIRES: `spot` is not the place's own.
  void forget(LeaseId id, const Spot& spot);

 private:
  absl::flat_hash_map<LeaseId, Lease> leases_;
};

}  // namespace tenure::backends::redis
