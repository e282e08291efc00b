#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <tenure/client/watch.hpp>
#include <tenure/error.hpp>

#include "backends/etcd/etcd.pb.h"
#include "backends/etcd/keys.hpp"
#include "backends/etcd/requests.hpp"

/// Admission rules: whether a queue entry holds the lock, decided from a list of the queue. Pure
/// functions without I/O.
namespace tenure::backends::etcd {

/// No conflicting predecessor: the entry holds the lock.
struct Admitted {};
/// A predecessor conflicts: wait for this key.
struct WaitFor {
  std::string key{};
  /// A change of that key is enough, such as a downgrade or the grant of permits.
  bool wakes_on_change = false;
  /// Semaphore: all predecessors hold permits, so a release by any of them can admit this entry.
  bool is_first = false;
};
/// The list is too short to decide.
struct ListTooShort {};
/// The name is used for another kind of lock.
struct Misused {
  std::string why{};
};
using Admission = std::variant<Admitted, WaitFor, ListTooShort, Misused>;

/// Predecessors of an entry, newest first.
struct Before {
  const google::protobuf::RepeatedPtrField<pb::KeyValue>& keys;
  int first = 0;
  bool has_more = false;
};
[[nodiscard]] Admission admission_of(const Claim& claim, const std::string& folder,
                                     const Before& before);

/// Size of the first list for this claim.
[[nodiscard]] ListOptions list_options_for(const Claim& claim);

/// Holders, from a list in queue order.
[[nodiscard]] std::vector<Holder> holders_in(const std::string& folder,
                                             const pb::RangeResponse& list);

}  // namespace tenure::backends::etcd
