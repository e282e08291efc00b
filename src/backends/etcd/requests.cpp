#include "backends/etcd/requests.hpp"

#include <utility>

namespace tenure::backends::etcd {
namespace {

void add_put(const QueueKey& queue_key, const std::string& value, pb::TxnRequest& txn) {
  auto& put = *txn.add_success()->mutable_put();
  put.set_key(queue_key.key);
  put.set_value(value);
  put.set_lease(queue_key.lease);
}

pb::Compare& add_compare(const QueueKey& queue_key, pb::TxnRequest& txn) {
  auto& compare = *txn.add_compare();
  compare.set_target(pb::Compare::CREATE);
  compare.set_key(queue_key.key);
  return compare;
}

/// Matches only the key created at that revision. If the revision is unknown, any existing key
/// matches, because no other client creates this key.
void compare_ours(const QueueKey& queue_key, pb::TxnRequest& txn) {
  auto& compare = add_compare(queue_key, txn);
  compare.set_result(queue_key.revision == 0 ? pb::Compare::GREATER : pb::Compare::EQUAL);
  compare.set_create_revision(queue_key.revision);
}

}  // namespace

pb::RequestOp list(const std::string& folder, std::int64_t to, const ListOptions& list_options) {
  pb::RequestOp operation;
  auto& range = *operation.mutable_range();
  range.set_key(folder);
  range.set_range_end(end_of(folder));
  range.set_sort_target(pb::RangeRequest::CREATE);
  range.set_sort_order(pb::RangeRequest::DESCEND);
  range.set_limit(list_options.limit);
  range.set_keys_only(!list_options.with_values);
  range.set_max_create_revision(to);
  return operation;
}

pb::RequestOp list_from_front(const std::string& folder, std::int64_t since, std::int64_t limit) {
  auto operation = list(folder, 0, {.limit = limit, .with_values = true});
  operation.mutable_range()->set_sort_order(pb::RangeRequest::ASCEND);
  operation.mutable_range()->set_min_create_revision(since == 0 ? 0 : since + 1);
  return operation;
}

pb::RequestOp enqueue(const QueueKey& queue_key, const std::string& value,
                      const ListOptions& list_options) {
  pb::RequestOp operation;
  auto& txn = *operation.mutable_txn();
  auto& compare = add_compare(queue_key, txn);
  compare.set_result(pb::Compare::EQUAL);
  compare.set_create_revision(0);
  add_put(queue_key, value, txn);
  if (list_options.limit > 0) {
    *txn.add_success() = list(queue_key.folder, 0, list_options);
  }
  *txn.add_failure() = read_key(queue_key.key);
  return operation;
}

pb::RequestOp enqueue_if_unchanged(const QueueKey& queue_key, const std::string& value,
                                   std::int64_t seen, const ListOptions& list_options) {
  pb::RequestOp operation;
  auto& txn = *operation.mutable_txn();
  auto& compare = *txn.add_compare();
  compare.set_result(pb::Compare::LESS);
  compare.set_target(pb::Compare::CREATE);
  compare.set_key(queue_key.folder);
  compare.set_range_end(end_of(queue_key.folder));
  compare.set_create_revision(seen + 1);
  add_put(queue_key, value, txn);
  *txn.add_failure() = read_key(queue_key.key);
  *txn.add_failure() = list(queue_key.folder, 0, list_options);
  return operation;
}

pb::RequestOp remove(const QueueKey& queue_key) {
  pb::RequestOp operation;
  auto& txn = *operation.mutable_txn();
  compare_ours(queue_key, txn);
  txn.add_success()->mutable_remove()->set_key(queue_key.key);
  return operation;
}

pb::RequestOp update_value(const QueueKey& queue_key, const std::string& value) {
  pb::RequestOp operation;
  auto& txn = *operation.mutable_txn();
  compare_ours(queue_key, txn);
  add_put(queue_key, value, txn);
  return operation;
}

pb::RequestOp read_key(const std::string& key) {
  pb::RequestOp operation;
  operation.mutable_range()->set_key(key);
  operation.mutable_range()->set_keys_only(true);
  return operation;
}

}  // namespace tenure::backends::etcd
