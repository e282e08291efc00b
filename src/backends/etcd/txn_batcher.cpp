#include "backends/etcd/txn_batcher.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <absl/container/inlined_vector.h>
#include <boost/asio/post.hpp>

namespace tenure::backends::etcd {
namespace {

constexpr auto txn_path = "/etcdserverpb.KV/Txn";

bool is_read(const TxnPart& part) {
  return std::ranges::all_of(part.operations, [](const auto& one) { return one.has_range(); });
}

/// Whether the response has the structure of the request.
bool fits(const pb::RequestOp& request, const pb::ResponseOp& response);

bool fits(const pb::TxnRequest& request, const pb::TxnResponse& response) {
  const auto& branch = response.succeeded() ? request.success() : request.failure();
  return std::ranges::equal(
      branch, response.responses(),
      [](const auto& expected, const auto& actual) { return fits(expected, actual); });
}

bool fits(const pb::RequestOp& request, const pb::ResponseOp& response) {
  switch (request.request_case()) {
    case pb::RequestOp::kRange: return response.has_range();
    case pb::RequestOp::kPut: return response.has_put();
    case pb::RequestOp::kRemove: return response.has_remove();
    case pb::RequestOp::kTxn: return response.has_txn() && fits(request.txn(), response.txn());
    case pb::RequestOp::REQUEST_NOT_SET: break;
  }
  return false;
}

bool fit(const std::vector<TxnPart>& batch, const pb::TxnResponse& response) {
  int index = 0;
  for (const auto& part : batch) {
    for (const auto& operation : part.operations) {
      if (index == response.responses_size() || !fits(operation, response.responses(index))) {
        return false;
      }
      ++index;
    }
  }
  return index == response.responses_size() && response.header().revision() > 0;
}

/// A single nested transaction is sent without an outer one.
bool is_single_txn(const std::vector<TxnPart>& batch) {
  return batch.size() == 1 && batch.front().operations.size() == 1 &&
         batch.front().operations.front().has_txn();
}

}  // namespace

void TxnBatcher::add(TxnPart part) {
  if (part.removes_key) {
    part.sequence = ++last_removal_;
    removals_[part.folder].insert(part.sequence);
  } else {
    part.sequence = last_removal_;
  }
  // A creation in flight will wait for this deletion, so it must not be delayed.
  part.is_urgent = part.is_urgent || (part.removes_key && creates_.contains(part.folder));
  urgent_ += part.is_urgent ? 1U : 0U;
  (is_read(part) ? reads_ : writes_).push_back(std::move(part));
  if (!std::exchange(is_flush_due_, true)) {
    boost::asio::post(loop_, [this] {
      is_flush_due_ = false;
      flush();
    });
  }
}

// Reads are never delayed: they change nothing and a waiter depends on most of them.
void TxnBatcher::flush() {
  for (auto* queue : {&reads_, &writes_}) {
    while (connection_->is_up() && !queue->empty() && (queue == &reads_ || can_write())) {
      auto batch = take_batch(*queue);
      if (batch.empty()) {
        break;  // All parts wait for others.
      }
      send(std::move(batch), queue == &writes_);
    }
  }
}

// Urgent, deferred and full batches are sent in parallel. Everything else waits for the batch in
// flight, because the parts that arrive during it share the next one.
bool TxnBatcher::can_write() {
  if (urgent_ > 0 || writes_.front().was_deferred || writes_.size() >= parts_max) {
    return writes_in_flight_ < write_batches_max;
  }
  return writes_in_flight_ == 0 && !is_delaying();
}

bool TxnBatcher::is_delaying() {
  const auto until = delay_.delay_until(writes_.size(), BatchDelay::Clock::now());
  if (until && !std::exchange(is_delay_timer_set_, true)) {
    delay_timer_.expires_at(*until);
    delay_timer_.async_wait([this](const boost::system::error_code& aborted) {
      if (!aborted) {
        is_delay_timer_set_ = false;
        flush();
      }
    });
  }
  return until.has_value();
}

bool TxnBatcher::is_ready(const TxnPart& part, std::uint64_t removing) const {
  if (!part.after_removals) {
    return true;
  }
  const auto it = removals_.find(part.folder);
  if (it == removals_.end()) {
    return true;
  }
  const auto first = it->second.upper_bound(removing);
  return first == it->second.end() || *first > part.sequence;
}

// Takes parts in FIFO order. A part that must wait for a deletion, or would be the second creation
// in its folder, is skipped; a bounded number of skips keeps the scan cheap.
TxnBatcher::Batch TxnBatcher::take_batch(std::deque<TxnPart>& from) {
  Batch batch;
  absl::InlinedVector<std::string, 8> creating;
  absl::flat_hash_map<std::string, std::uint64_t> removing_upto;
  std::size_t operations = 0;
  std::size_t bytes = 0;
  std::size_t skipped = 0;
  auto it = from.begin();
  while (it != from.end() && batch.size() < parts_max && skipped < skipped_max) {
    std::size_t size = 0;
    for (const auto& operation : it->operations) {
      size += operation.ByteSizeLong() + 8;
    }
    const bool is_full = operations + it->operations.size() > operations_max ||
                         bytes + size > bytes_max || it->must_go_alone;
    if (!batch.empty() && is_full) {
      break;
    }
    const auto removing = removing_upto.find(it->folder);
    const bool has_creation =
        it->creates_key && std::ranges::find(creating, it->folder) != creating.end();
    it->was_deferred = has_creation;
    if (has_creation || !is_ready(*it, removing == removing_upto.end() ? 0 : removing->second)) {
      ++it;
      ++skipped;
      continue;
    }
    if (it->creates_key) {
      creating.push_back(it->folder);
    }
    if (it->removes_key &&
        is_ready({.folder = it->folder, .after_removals = true, .sequence = it->sequence - 1},
                 removing == removing_upto.end() ? 0 : removing->second)) {
      // Every earlier deletion has completed or is in this batch.
      removing_upto[it->folder] = it->sequence;
    }
    operations += it->operations.size();
    bytes += size;
    urgent_ -= it->is_urgent ? 1U : 0U;
    const bool must_go_alone = it->must_go_alone;
    batch.push_back(std::move(*it));
    it = from.erase(it);
    if (must_go_alone) {
      break;
    }
  }
  return batch;
}

void TxnBatcher::send(Batch batch, bool is_write) {
  pb::TxnRequest request;
  const bool is_unwrapped = is_single_txn(batch);
  // The operations stay owned by the parts, for a retry; the request only borrows them.
  for (auto& part : batch) {
    for (auto& operation : part.operations) {
      if (!is_unwrapped) {
        request.mutable_success()->UnsafeArenaAddAllocated(&operation);
      }
    }
  }
  auto& sent = is_unwrapped ? *batch.front().operations.front().mutable_txn() : request;
  ++in_flight_;
  writes_in_flight_ += is_write ? 1U : 0U;
  count_creates(batch, 1);
  auto* const borrowed = request.mutable_success();
  const auto return_operations = [borrowed] {
    borrowed->UnsafeArenaExtractSubrange(0, borrowed->size(), nullptr);
  };
  const auto sent_batch = std::make_shared<Batch>(std::move(batch));
  connection_->call<pb::TxnResponse>(
      txn_path, sent,
      [this, sent_batch, is_write, is_unwrapped, began = BatchDelay::Clock::now()](
          const grpc::Status& status, pb::TxnResponse response) {
        --in_flight_;
        writes_in_flight_ -= is_write ? 1U : 0U;
        count_creates(*sent_batch, -1);
        if (is_write) {
          const auto now = BatchDelay::Clock::now();
          delay_.on_completed(sent_batch->size(),
                              std::min(writes_.size(), parts_max - sent_batch->size()), now - began,
                              now);
        }
        if (is_unwrapped && status.ok()) {
          pb::TxnResponse outer;
          *outer.mutable_header() = response.header();
          outer.set_succeeded(true);
          outer.add_responses()->mutable_txn()->Swap(&response);
          completed(std::move(*sent_batch), status, outer);
        } else {
          completed(std::move(*sent_batch), status, response);
        }
        flush();
      });
  return_operations();
}

void TxnBatcher::completed(Batch batch, const grpc::Status& status,
                           const pb::TxnResponse& response) {
  if (!status.ok()) {
    retry_or_fail(std::move(batch), classify(status, connection_->server()));
    return;
  }
  for (const auto& part : batch) {
    forget_removal(part);
  }
  if (!fit(batch, response)) {
    const auto error = malformed_reply(connection_->server());
    for (auto& part : batch) {
      part.on_reply(std::unexpected(error));
    }
    return;
  }
  std::size_t first = 0;
  for (auto& part : batch) {
    const auto count = part.operations.size();
    part.on_reply(TxnPart::Reply{
        .responses = std::span(response.responses().data(), first + count).subspan(first),
        .revision = response.header().revision(),
        .is_retry = part.is_retry});
    first += count;
  }
}

// A rejected transaction changed nothing. A transaction with an unknown outcome may have been
// applied, which the parts detect by is_retry.
void TxnBatcher::retry_or_fail(Batch batch, const Failure& failure) {
  const bool is_final = failure.recovery == Recovery::none && batch.size() == 1;
  if (is_final) {
    forget_removal(batch.front());
    batch.front().on_reply(std::unexpected(failure.error));
    return;
  }
  for (auto& part : batch) {
    // One part caused the rejection of the whole batch. The transaction changed nothing, so each
    // part is sent again alone to find it.
    part.must_go_alone = part.must_go_alone || failure.recovery == Recovery::none;
    part.is_retry = part.is_retry || failure.error == Errc::unavailable;
    urgent_ += part.is_urgent ? 1U : 0U;
  }
  // Requeue in the old order, before later parts.
  auto& queue = is_read(batch.front()) ? reads_ : writes_;
  queue.insert(queue.begin(), std::make_move_iterator(batch.begin()),
               std::make_move_iterator(batch.end()));
  connection_->recover(failure);
}

void TxnBatcher::count_creates(const Batch& batch, std::int32_t by) {
  for (const auto& part : batch) {
    if (!part.creates_key) {
      continue;
    }
    auto& count = creates_[part.folder];
    count += by;
    if (count == 0) {
      creates_.erase(part.folder);
    }
  }
}

void TxnBatcher::forget_removal(const TxnPart& part) {
  const auto it = part.removes_key ? removals_.find(part.folder) : removals_.end();
  if (it == removals_.end()) {
    return;
  }
  it->second.erase(part.sequence);
  if (it->second.empty()) {
    removals_.erase(it);
  }
}

void TxnBatcher::fail_all(const Error& why, Survivors survivors) {
  for (auto* queue : {&writes_, &reads_}) {
    for (auto& part : std::exchange(*queue, {})) {
      if (part.survives_rejection && survivors == Survivors::keep) {
        queue->push_back(std::move(part));
      } else {
        urgent_ -= part.is_urgent ? 1U : 0U;
        forget_removal(part);
        part.on_reply(std::unexpected(why));
      }
    }
  }
}

}  // namespace tenure::backends::etcd
