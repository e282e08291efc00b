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

/// Who may go, by what a list of the store says. Knows nothing of connections.
namespace tenure::backends::etcd {

/// Nobody is in the way.
struct Admitted {};
/// Somebody is.
struct WaitFor {
  std::string key{};
  /// It is enough for that one to change; of a semaphore, to be let in.
  bool wakes_on_change = false;
  /// Of a semaphore: all before us are in, so that anybody who leaves may make room.
  bool is_first = false;
};
/// The list is too short to say.
struct ListTooShort {};
/// It is used for something else.
struct Misused {
  std::string why{};
};
using Admission = std::variant<Admitted, WaitFor, ListTooShort, Misused>;

/// `before`: who came before, the last first, of which `first` is the first to look at; there are
/// more than those if `has_more`.
struct Before {
  const google::protobuf::RepeatedPtrField<pb::KeyValue>& keys;
  int first = 0;
  bool has_more = false;
};
[[nodiscard]] Admission admission_of(const Claim& claim, const std::string& folder,
                                     const Before& before);

/// How much to ask for at first.
[[nodiscard]] ListOptions list_options_for(const Claim& claim);

/// Those who hold it, by a list from the front.
[[nodiscard]] std::vector<Holder> holders_in(const std::string& folder,
                                             const pb::RangeResponse& list);

}  // namespace tenure::backends::etcd
