#pragma once

#include <cstdint>
#include <string>

#include "backends/etcd/etcd.pb.h"
#include "backends/etcd/keys.hpp"

/// Builders of etcd operations for queue entries.
namespace tenure::backends::etcd {

/// Key of one acquisition and its metadata.
struct QueueKey {
  std::string folder{};
  std::string key{};
  /// Lease id at etcd.
  std::int64_t lease = 0;
  /// Create revision: position in the queue, and fencing token.
  std::int64_t revision = 0;
};

/// Options of a queue list, which starts at the newest entry.
struct ListOptions {
  std::int64_t limit = 2;
  bool with_values = false;
};

/// Lists the queue, newest first, up to create revision `to`; 0: all.
[[nodiscard]] pb::RequestOp list(const std::string& folder, std::int64_t to,
                                 const ListOptions& list_options);
/// Lists the queue with values, oldest first, from after revision `since`; 0: all.
[[nodiscard]] pb::RequestOp list_from_front(const std::string& folder, std::int64_t since,
                                            std::int64_t limit);

/// Creates the key if it is missing. Responses: put, and a list if its limit is not 0; or the
/// existing key.
[[nodiscard]] pb::RequestOp enqueue(const QueueKey& queue_key, const std::string& value,
                                    const ListOptions& list_options);
/// Creates the key if no entry was added after revision `seen` of a list without a conflict; 0: if
/// the queue is empty. Responses: put; or the key, if it exists, and a list.
[[nodiscard]] pb::RequestOp enqueue_if_unchanged(const QueueKey& queue_key,
                                                 const std::string& value, std::int64_t seen,
                                                 const ListOptions& list_options);
/// Deletes the key if this client created it. Responses: remove; or none.
[[nodiscard]] pb::RequestOp remove(const QueueKey& queue_key);
/// Replaces the value if this client created the key. Responses: put; or none.
[[nodiscard]] pb::RequestOp update_value(const QueueKey& queue_key, const std::string& value);
/// Reads whether the key exists. Response: the key without its value.
[[nodiscard]] pb::RequestOp read_key(const std::string& key);

}  // namespace tenure::backends::etcd
