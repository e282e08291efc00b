#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <tenure/ids.hpp>
#include <tenure/lock_mode.hpp>

#include "backends/backend.hpp"

/// What locks look like in etcd: the lock `name` is the keys `root name /…`, one for each that
/// holds or waits, each under the lease of its owner. Who was created first comes first. `etcdctl
/// lock` and the Go client's mutex do the same, with an empty value. Format:
/// docs/reference/etcd_keys.md.
namespace tenure::backends::etcd {

/// etcd's numbers are signed, and 0 is none.
[[nodiscard]] std::int64_t number_of(LeaseId lease);

/// Under which all keys of a lock are; ends with '/'.
[[nodiscard]] std::string folder_of(std::string_view root, std::string_view name);
/// The first key behind them.
[[nodiscard]] std::string end_of(std::string folder);
/// Of one acquisition. Begins as etcdctl's would, with the lease; but two acquisitions of one lease
/// are two.
[[nodiscard]] std::string key_of(const std::string& folder, LeaseId lease, RequestId request);
/// Is it somebody's place in the queue of this lock? `a/b/1` is one of the lock `a/b`, and not of
/// `a`, though it lies in its folder.
[[nodiscard]] bool is_queue_key(std::string_view folder, std::string_view key);

/// What somebody asks of a lock.
using Claim = std::variant<LockMode, Permits>;

/// What the value of a key says. Of other programs' keys: exclusive, and nothing else.
struct Record {
  Claim claim = LockMode::exclusive;
  std::string owner{};
  std::string metadata{};
};
[[nodiscard]] std::string text_of(const Record& record);
[[nodiscard]] Record record_from(std::string_view text);

}  // namespace tenure::backends::etcd
