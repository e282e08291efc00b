#include "backends/etcd/convoy.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <absl/container/inlined_vector.h>
#include <boost/asio/post.hpp>

namespace tenure::backends::etcd {
namespace {

constexpr auto txn_path = "/etcdserverpb.KV/Txn";

bool is_read(const Part& part) {
  return std::ranges::all_of(part.operations, [](const auto& one) { return one.has_range(); });
}

/// Does the answer have the form of the question?
bool fits(const pb::RequestOp& request, const pb::ResponseOp& response);

bool fits(const pb::TxnRequest& request, const pb::TxnResponse& response) {
  const auto& branch = response.succeeded() ? request.success() : request.failure();
  return std::ranges::equal(branch, response.responses(),
                            [](const auto& asked, const auto& told) { return fits(asked, told); });
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

bool fit(const std::vector<Part>& flight, const pb::TxnResponse& response) {
  int index = 0;
  for (const auto& part : flight) {
    for (const auto& operation : part.operations) {
      if (index == response.responses_size() || !fits(operation, response.responses(index))) {
        return false;
      }
      ++index;
    }
  }
  return index == response.responses_size() && response.header().revision() > 0;
}

/// A transaction by itself needs no other one around it.
bool is_bare(const std::vector<Part>& flight) {
  return flight.size() == 1 && flight.front().operations.size() == 1 &&
         flight.front().operations.front().has_txn();
}

}  // namespace

void Convoy::add(Part part) {
  if (part.removes) {
    part.number = ++last_removal_;
    removals_[part.folder].insert(part.number);
  } else {
    part.number = last_removal_;
  }
  // Whoever is about to join behind what goes waits for it, too.
  part.is_awaited = part.is_awaited || (part.removes && makers_.contains(part.folder));
  awaited_ += part.is_awaited ? 1U : 0U;
  (is_read(part) ? reads_ : writes_).push_back(std::move(part));
  if (!std::exchange(is_flush_due_, true)) {
    boost::asio::post(loop_, [this] {
      is_flush_due_ = false;
      flush();
    });
  }
}

void Convoy::flush() {
  for (auto* queue : {&reads_, &writes_}) {
    while (connection_->is_up() && !queue->empty() && (queue == &reads_ || may_write())) {
      auto flight = take(*queue);
      if (flight.empty()) {
        break;  // All wait for others.
      }
      send(std::move(flight), queue == &writes_);
    }
  }
}

bool Convoy::may_write() {
  if (awaited_ > 0 || writes_.front().is_left_over || writes_.size() >= parts_max) {
    return writing_ < writes_at_once;
  }
  return writing_ == 0 && !is_mustering();
}

bool Convoy::is_mustering() {
  const auto until = muster_.wait_until(writes_.size(), Muster::Clock::now());
  if (until && !std::exchange(is_timer_set_, true)) {
    mustered_.expires_at(*until);
    mustered_.async_wait([this](const boost::system::error_code& aborted) {
      if (!aborted) {
        is_timer_set_ = false;
        flush();
      }
    });
  }
  return until.has_value();
}

bool Convoy::is_ready(const Part& part, std::uint64_t removing) const {
  if (!part.follows_removals) {
    return true;
  }
  const auto it = removals_.find(part.folder);
  if (it == removals_.end()) {
    return true;
  }
  const auto first = it->second.upper_bound(removing);
  return first == it->second.end() || *first > part.number;
}

Convoy::Flight Convoy::take(std::deque<Part>& from) {
  Flight flight;
  absl::InlinedVector<std::string, 8> made;
  absl::flat_hash_map<std::string, std::uint64_t> removed;
  std::size_t operations = 0;
  std::size_t bytes = 0;
  std::size_t skipped = 0;
  auto it = from.begin();
  while (it != from.end() && flight.size() < parts_max && skipped < skipped_max) {
    std::size_t size = 0;
    for (const auto& operation : it->operations) {
      size += operation.ByteSizeLong() + 8;
    }
    const bool is_full = operations + it->operations.size() > operations_max ||
                         bytes + size > bytes_max || it->is_alone;
    if (!flight.empty() && is_full) {
      break;
    }
    const auto removing = removed.find(it->folder);
    const bool is_second = it->makes && std::ranges::find(made, it->folder) != made.end();
    it->is_left_over = is_second;
    if (is_second || !is_ready(*it, removing == removed.end() ? 0 : removing->second)) {
      ++it;
      ++skipped;
      continue;
    }
    if (it->makes) {
      made.push_back(it->folder);
    }
    if (it->removes &&
        is_ready({.folder = it->folder, .follows_removals = true, .number = it->number - 1},
                 removing == removed.end() ? 0 : removing->second)) {
      removed[it->folder] = it->number;  // And none before it is elsewhere.
    }
    operations += it->operations.size();
    bytes += size;
    awaited_ -= it->is_awaited ? 1U : 0U;
    const bool is_alone = it->is_alone;
    flight.push_back(std::move(*it));
    it = from.erase(it);
    if (is_alone) {
      break;
    }
  }
  return flight;
}

void Convoy::send(Flight flight, bool is_write) {
  pb::TxnRequest request;
  const bool is_hoisted = is_bare(flight);
  // The operations stay ours, in case they have to be sent again: the request only borrows them.
  for (auto& part : flight) {
    for (auto& operation : part.operations) {
      if (!is_hoisted) {
        request.mutable_success()->UnsafeArenaAddAllocated(&operation);
      }
    }
  }
  auto& sent = is_hoisted ? *flight.front().operations.front().mutable_txn() : request;
  ++flights_;
  writing_ += is_write ? 1U : 0U;
  count_makers(flight, 1);
  auto* const borrowed = request.mutable_success();
  const auto give_back = [borrowed] {
    borrowed->UnsafeArenaExtractSubrange(0, borrowed->size(), nullptr);
  };
  const auto kept = std::make_shared<Flight>(std::move(flight));
  connection_->ask<pb::TxnResponse>(
      txn_path, sent,
      [this, kept, is_write, is_hoisted, began = Muster::Clock::now()](const grpc::Status& status,
                                                                       pb::TxnResponse response) {
        --flights_;
        writing_ -= is_write ? 1U : 0U;
        count_makers(*kept, -1);
        if (is_write) {
          const auto now = Muster::Clock::now();
          muster_.landed(kept->size(), std::min(writes_.size(), parts_max - kept->size()),
                         now - began, now);
        }
        if (is_hoisted && status.ok()) {
          pb::TxnResponse outer;
          *outer.mutable_header() = response.header();
          outer.set_succeeded(true);
          outer.add_responses()->mutable_txn()->Swap(&response);
          landed(std::move(*kept), status, outer);
        } else {
          landed(std::move(*kept), status, response);
        }
        flush();
      });
  give_back();
}

void Convoy::landed(Flight flight, const grpc::Status& status, const pb::TxnResponse& response) {
  if (!status.ok()) {
    refused(std::move(flight), judge(status, connection_->server()));
    return;
  }
  for (const auto& part : flight) {
    forget_removal(part);
  }
  if (!fit(flight, response)) {
    const auto error = nonsense(connection_->server());
    for (auto& part : flight) {
      part.answered(std::unexpected(error));
    }
    return;
  }
  std::size_t first = 0;
  for (auto& part : flight) {
    const auto count = part.operations.size();
    part.answered(Part::Answer{
        .responses = std::span(response.responses().data(), first + count).subspan(first),
        .revision = response.header().revision(),
        .is_retry = part.is_retry});
    first += count;
  }
}

void Convoy::refused(Flight flight, const Verdict& verdict) {
  const bool is_over = verdict.next == Next::give_up && flight.size() == 1;
  if (is_over) {
    forget_removal(flight.front());
    flight.front().answered(std::unexpected(verdict.error));
    return;
  }
  for (auto& part : flight) {
    // Who was refused for another one's sake is asked again by itself, and nothing was done.
    part.is_alone = part.is_alone || verdict.next == Next::give_up;
    part.is_retry = part.is_retry || verdict.error == Errc::unavailable;
    awaited_ += part.is_awaited ? 1U : 0U;
  }
  // In their order, before what came later.
  auto& queue = is_read(flight.front()) ? reads_ : writes_;
  queue.insert(queue.begin(), std::make_move_iterator(flight.begin()),
               std::make_move_iterator(flight.end()));
  connection_->obey(verdict);
}

void Convoy::count_makers(const Flight& flight, std::int32_t by) {
  for (const auto& part : flight) {
    if (part.makes && (makers_[part.folder] += by) == 0) {
      makers_.erase(part.folder);
    }
  }
}

void Convoy::forget_removal(const Part& part) {
  const auto it = part.removes ? removals_.find(part.folder) : removals_.end();
  if (it == removals_.end()) {
    return;
  }
  it->second.erase(part.number);
  if (it->second.empty()) {
    removals_.erase(it);
  }
}

void Convoy::fail_most(const Error& why) {
  for (auto* queue : {&writes_, &reads_}) {
    for (auto& part : std::exchange(*queue, {})) {
      if (part.outlives_refusal) {
        queue->push_back(std::move(part));
      } else {
        awaited_ -= part.is_awaited ? 1U : 0U;
        forget_removal(part);
        part.answered(std::unexpected(why));
      }
    }
  }
}

void Convoy::fail_all(const Error& why) {
  for (auto* queue : {&writes_, &reads_}) {
    for (auto& part : std::exchange(*queue, {})) {
      awaited_ -= part.is_awaited ? 1U : 0U;
      forget_removal(part);
      part.answered(std::unexpected(why));
    }
  }
}

}  // namespace tenure::backends::etcd
