#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

#include "backends/backend.hpp"

/// Key layout of locks in etcd. The lock `name` is the set of keys `root name /…`, one for each
/// holder or waiter, attached to the lease of its owner and ordered by create revision. `etcdctl
/// lock` and the Go client's mutex use the same layout with an empty value. Format:
/// docs/reference/etcd_keys.md.
namespace tenure::backends::etcd {

/// Lease id for etcd: positive, because etcd's ids are signed and 0 means none.
[[nodiscard]] std::int64_t number_of(LeaseId lease);

/// Prefix of all keys of a lock; ends with '/'.
[[nodiscard]] std::string folder_of(std::string_view root, std::string_view name);
/// First key after those with this prefix (range end).
[[nodiscard]] std::string end_of(std::string folder);
/// Key of one acquisition. It begins with the lease id, like etcdctl's key, followed by the request
/// id, because one lease may acquire twice.
[[nodiscard]] std::string key_of(const std::string& folder, LeaseId lease, RequestId request);
/// Whether the key is a queue entry of this lock. `a/b/1` belongs to the lock `a/b` and not to `a`,
/// although it has the prefix `a/`.
[[nodiscard]] bool is_queue_key(std::string_view folder, std::string_view key);

/// Mode or permits of a queue entry.
using Claim = std::variant<LockMode, Permits>;

/// Decoded value of a key. A key of another program counts as exclusive.
struct Record {
  Claim claim = LockMode::exclusive;
  std::string owner{};
  std::string metadata{};
};
[[nodiscard]] std::string text_of(const Record& record);
[[nodiscard]] Record record_from(std::string_view text);

}  // namespace tenure::backends::etcd
