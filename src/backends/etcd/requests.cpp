#include "backends/etcd/requests.hpp"

#include <utility>

namespace tenure::backends::etcd {
namespace {

void add_put(const Spot& spot, const std::string& value, pb::TxnRequest& txn) {
  auto& put = *txn.add_success()->mutable_put();
  put.set_key(spot.key);
  put.set_value(value);
  put.set_lease(spot.lease);
}

pb::Compare& add_compare(const Spot& spot, pb::TxnRequest& txn) {
  auto& compare = *txn.add_compare();
  compare.set_target(pb::Compare::CREATE);
  compare.set_key(spot.key);
  return compare;
}

/// Only if the key is the one that was made at that revision; if that is not known, any, since
/// nobody else makes this key.
void compare_ours(const Spot& spot, pb::TxnRequest& txn) {
  auto& compare = add_compare(spot, txn);
  compare.set_result(spot.revision == 0 ? pb::Compare::GREATER : pb::Compare::EQUAL);
  compare.set_create_revision(spot.revision);
}

}  // namespace

pb::RequestOp list(const std::string& folder, std::int64_t to, const View& view) {
  pb::RequestOp operation;
  auto& range = *operation.mutable_range();
  range.set_key(folder);
  range.set_range_end(end_of(folder));
  range.set_sort_target(pb::RangeRequest::CREATE);
  range.set_sort_order(pb::RangeRequest::DESCEND);
  range.set_limit(view.limit);
  range.set_keys_only(!view.with_values);
  range.set_max_create_revision(to);
  return operation;
}

pb::RequestOp list_from_front(const std::string& folder, std::int64_t since, std::int64_t limit) {
  auto operation = list(folder, 0, {.limit = limit, .with_values = true});
  operation.mutable_range()->set_sort_order(pb::RangeRequest::ASCEND);
  operation.mutable_range()->set_min_create_revision(since == 0 ? 0 : since + 1);
  return operation;
}

pb::RequestOp join(const Spot& spot, const std::string& value, const View& view) {
  pb::RequestOp operation;
  auto& txn = *operation.mutable_txn();
  auto& compare = add_compare(spot, txn);
  compare.set_result(pb::Compare::EQUAL);
  compare.set_create_revision(0);
  add_put(spot, value, txn);
  if (view.limit > 0) {
    *txn.add_success() = list(spot.folder, 0, view);
  }
  *txn.add_failure() = look_at(spot.key);
  return operation;
}

pb::RequestOp join_unless_changed(const Spot& spot, const std::string& value, std::int64_t seen,
                                  const View& view) {
  pb::RequestOp operation;
  auto& txn = *operation.mutable_txn();
  auto& compare = *txn.add_compare();
  compare.set_result(pb::Compare::LESS);
  compare.set_target(pb::Compare::CREATE);
  compare.set_key(spot.folder);
  compare.set_range_end(end_of(spot.folder));
  compare.set_create_revision(seen + 1);
  add_put(spot, value, txn);
  *txn.add_failure() = look_at(spot.key);
  *txn.add_failure() = list(spot.folder, 0, view);
  return operation;
}

pb::RequestOp remove(const Spot& spot) {
  pb::RequestOp operation;
  auto& txn = *operation.mutable_txn();
  compare_ours(spot, txn);
  txn.add_success()->mutable_remove()->set_key(spot.key);
  return operation;
}

pb::RequestOp rewrite(const Spot& spot, const std::string& value) {
  pb::RequestOp operation;
  auto& txn = *operation.mutable_txn();
  compare_ours(spot, txn);
  add_put(spot, value, txn);
  return operation;
}

pb::RequestOp look_at(const std::string& key) {
  pb::RequestOp operation;
  operation.mutable_range()->set_key(key);
  operation.mutable_range()->set_keys_only(true);
  return operation;
}

}  // namespace tenure::backends::etcd
