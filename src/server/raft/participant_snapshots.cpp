#include <algorithm>
#include <utility>

#include "server/raft/participant.hpp"

namespace tenure::server::raft {

void Participant::take_snapshot(SnapshotDone done, Time now) {
  arrive(now);
  request_snapshot(std::move(done));
  settle();
}

void Participant::request_snapshot(SnapshotDone done) {
  wishes_.push_back({.wanted = replica_.applied(), .done = std::move(done)});
  grant_wishes();
  compact_if_due();
}

void Participant::snapshot_unreadable(const Error& error, Time now) {
  arrive(now);
  const Index bad = replica_.snapshot().index;
  if (unreadable_ != bad) {
    unreadable_ = bad;
    surroundings_.report(Severity::error,
                         "the snapshot that a peer needs cannot be read: " + error.detail +
                             " The state in memory is whole: a new snapshot of it is taken.");
    // It takes the place of the old one only if it stands for more.
    if (is_ready_ && replica_.log().last() <= bad && own_commands_.empty()) {
      propose_own(core::Tick{});
    }
    wishes_.push_back({.wanted = next(bad), .done = [this](const Result<std::uint64_t>& taken) {
                         if (!taken) {
                           unreadable_.reset();  // The next peer that needs it asks again.
                         }
                       }});
  }
  settle();
}

bool Participant::is_compaction_due() const {
  if (compact_again_at_.has_value() || log_bytes_ == 0) {
    return false;
  }
  const auto enough =
      std::max(options_.snapshot_log_bytes, options_.snapshot_factor * snapshot_bytes_);
  // On a full disk the log behind a snapshot is the one thing that can make room.
  return log_bytes_ > enough || surroundings_.disk().space.is_short;
}

void Participant::compact_if_due() {
  if (compaction_.has_value() || (wishes_.empty() && !is_compaction_due())) {
    return;
  }
  if (last_compacted_ > replica_.snapshot().index) {
    return;  // That one counts only when our own log is durable so far.
  }
  if (auto mark = replica_.next_snapshot()) {
    begin_compaction(std::move(*mark));
  }
}

void Participant::begin_compaction(SnapshotMark mark) {
  CompactionPlan plan{.mark = mark, .image = core::image_of(machine_.state())};
  compaction_ = {.mark = std::move(mark), .log_bytes = log_bytes_, .began = now_};
  surroundings_.compact(std::move(plan));
}

void Participant::compacted(const Result<std::size_t>& bytes, Time now) {
  arrive(now);
  const auto done = *std::exchange(compaction_, std::nullopt);
  // A snapshot of the leader has overtaken it, and took its place on disk.
  const bool is_overtaken = done.mark.index <= replica_.snapshot().index;
  if (!bytes && !is_overtaken) {
    surroundings_.report(Severity::warning,
                         "no snapshot could be taken: " + bytes.error().detail +
                             ". Nothing is lost; the log grows until it succeeds.");
    compact_again_at_ = now_ + options_.snapshot_retry;
    for (auto* listener : listeners_) {
      listener->snapshot_failed();
    }
    for (auto& wish : std::exchange(wishes_, {})) {
      wish.done(std::unexpected(bytes.error()));
    }
    settle();
    return;
  }
  if (!is_overtaken) {
    log_bytes_ -= std::min(done.log_bytes, log_bytes_);
    snapshot_bytes_ = *bytes;
    last_compacted_ = done.mark.index;
    replica_.snapshot_taken(done.mark);
    cut_log();
    if (surroundings_.disk().space.is_short) {
      compact_again_at_ = now_ + options_.snapshot_retry;
    }
    for (auto* listener : listeners_) {
      listener->snapshot_taken(now_ - done.began);
    }
  }
  settle();
}

void Participant::cut_log() {
  const Index first = replica_.log().first();
  if (first > cut_before_) {
    cut_before_ = first;
    surroundings_.cut(Index{first.get() - 1});
  }
}

void Participant::grant_wishes() {
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

}  // namespace tenure::server::raft
