#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

#include "server/raft/node.hpp"

namespace tenure::server::raft {

void Node::take_snapshot(SnapshotDone done) {
  boost::asio::post(
      loop_, [this, done = std::move(done)]() mutable { request_snapshot(std::move(done)); });
}

void Node::request_snapshot(SnapshotDone done) {
  wishes_.push_back({.wanted = replica_.applied(), .done = std::move(done)});
  grant_wishes();
  compact_if_due();
}

bool Node::is_compaction_due() const {
  if (is_retry_pending_ || log_bytes_ == 0) {
    return false;
  }
  const auto enough =
      std::max(options_.snapshot_log_bytes, options_.snapshot_factor * snapshot_bytes_);
  // On a full disk the log behind a snapshot is the one thing that can make room.
  return log_bytes_ > enough || journal_->space().is_short;
}

void Node::compact_if_due() {
  if (is_compacting_ || (wishes_.empty() && !is_compaction_due())) {
    return;
  }
  if (auto mark = replica_.next_snapshot()) {
    begin_compaction(std::move(*mark));
  }
}

void Node::begin_compaction(SnapshotMark mark) {
  is_compacting_ = true;
  compaction_began_ = std::chrono::steady_clock::now();
  CompactionPlan plan{.mark = mark, .image = core::image_of(machine_.state())};
  compactor_.begin(std::move(plan), [this, mark, bytes = log_bytes_](Result<std::size_t> written) {
    auto result = written ? Result<void>() : std::unexpected(std::move(written).error());
    boost::asio::post(loop_, [this, mark, bytes, result = std::move(result)] {
      finish_compaction(mark, bytes, result);
    });
  });
}

void Node::finish_compaction(const SnapshotMark& mark, std::size_t bytes,
                             const Result<void>& result) {
  is_compacting_ = false;
  if (!result) {
    options_.report(Severity::warning, "no snapshot could be taken: " + result.error().detail +
                                           ". Nothing is lost; the log grows until it succeeds.");
    retry_compaction_later();
    for (auto& wish : std::exchange(wishes_, {})) {
      wish.done(std::unexpected(result.error()));
    }
    return;
  }
  log_bytes_ -= std::min(bytes, log_bytes_);
  snapshot_bytes_ = snapshot_file_->bytes();
  replica_.snapshot_taken(mark);
  disk_.cut(Index{replica_.log().first().get() - 1});
  if (journal_->space().is_short) {
    retry_compaction_later();
  }
  tell_all([took = std::chrono::steady_clock::now() - compaction_began_](Listener& listener) {
    listener.snapshot_taken(took);
  });
  after_event();
  grant_wishes();
}

void Node::grant_wishes() {
  const Index taken = replica_.snapshot().index;
  auto wishes = std::exchange(wishes_, {});
  for (auto& wish : wishes) {
    if (wish.wanted > taken) {
      wishes_.push_back(std::move(wish));
    } else {
      wish.done(taken.get());
    }
  }
}

void Node::retry_compaction_later() {
  is_retry_pending_ = true;
  retry_timer_.expires_after(options_.snapshot_retry);
  retry_timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) {
      is_retry_pending_ = false;
      compact_if_due();
    }
  });
}

}  // namespace tenure::server::raft
