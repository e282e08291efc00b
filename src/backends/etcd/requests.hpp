#pragma once

#include <cstdint>
#include <string>

#include "backends/etcd/etcd.pb.h"
#include "backends/etcd/keys.hpp"

/// What is asked of etcd, as operations of a transaction.
namespace tenure::backends::etcd {

/// One acquisition, as it stands in the store.
struct QueueKey {
  std::string folder{};
  std::string key{};
  std::int64_t lease = 0;     ///< etcd's number of it.
  std::int64_t revision = 0;  ///< At which it was created: its place in the queue, and its token.
};

/// How much of a queue is to be told, from the back.
struct ListOptions {
  std::int64_t limit = 2;
  bool with_values = false;
};

/// Who is there, the last to come first; `to` and those before, or all if it is 0.
[[nodiscard]] pb::RequestOp list(const std::string& folder, std::int64_t to,
                                 const ListOptions& list_options);
/// The same from the front, with values: those who came after `since`; 0: all of them.
[[nodiscard]] pb::RequestOp list_from_front(const std::string& folder, std::int64_t since,
                                            std::int64_t limit);

/// Makes the key if it is not there. Answers: put, and list if its limit is not 0; or, if
/// it was there, the key.
[[nodiscard]] pb::RequestOp enqueue(const QueueKey& queue_key, const std::string& value,
                                    const ListOptions& list_options);
/// Makes the key if nobody has come since `seen`, the revision of a list that had nobody in the
/// way; 0: if nobody is there at all. Answers: put; or the key, if it is there, and list.
[[nodiscard]] pb::RequestOp enqueue_if_unchanged(const QueueKey& queue_key,
                                                 const std::string& value, std::int64_t seen,
                                                 const ListOptions& list_options);
/// Removes the key if it is the one that we made. Answers: remove; or nothing.
[[nodiscard]] pb::RequestOp remove(const QueueKey& queue_key);
/// Writes the value again, likewise. Answers: put; or nothing.
[[nodiscard]] pb::RequestOp update_value(const QueueKey& queue_key, const std::string& value);
/// Is it there? Answers with its key alone.
[[nodiscard]] pb::RequestOp read_key(const std::string& key);

}  // namespace tenure::backends::etcd
