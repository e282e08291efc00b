#include "server/raft/snapshot_scheduler.hpp"

#include <algorithm>
#include <utility>

namespace tenure::server::raft {

void SnapshotScheduler::restored(std::size_t bytes) {
  log_bytes_ = 0;
  snapshot_bytes_ = bytes;
}

void SnapshotScheduler::request(Index wanted, Done done) {
  requests_.push_back({.wanted = wanted, .done = std::move(done)});
}

void SnapshotScheduler::complete_requests(Index newest) {
  if (requests_.empty()) {
    return;
  }
  for (auto& request : std::exchange(requests_, {})) {
    if (request.wanted > newest) {
      requests_.push_back(std::move(request));
    } else {
      request.done(newest.get());
    }
  }
}

void SnapshotScheduler::fail_requests(const Error& error) {
  for (auto& request : std::exchange(requests_, {})) {
    request.done(std::unexpected(error));
  }
}

bool SnapshotScheduler::is_due(Index newest, const Space& space) const {
  // A snapshot of this member counts only when its own log is durable up to there.
  if (running_.has_value() || last_taken_ > newest) {
    return false;
  }
  if (!requests_.empty()) {
    return true;
  }
  if (again_at_.has_value() || log_bytes_ == 0) {
    return false;
  }
  // On a full disk only the log behind a snapshot can be removed.
  return space.is_short ||
         log_bytes_ > std::max(options_.log_bytes, options_.factor * snapshot_bytes_);
}

void SnapshotScheduler::begin(SnapshotMark mark, Time now) {
  running_ = {.mark = std::move(mark), .log_bytes = log_bytes_, .began = now};
}

SnapshotScheduler::Finished SnapshotScheduler::finish(const Result<std::size_t>& bytes,
                                                      Index newest, Time now) {
  auto done = *std::exchange(running_, std::nullopt);
  Finished finished{.mark = std::move(done.mark), .took = now - done.began};
  if (finished.mark.index <= newest) {
    finished.outcome = Outcome::overtaken;
  } else if (!bytes) {
    finished.outcome = Outcome::failed;
    pause(now);
  } else {
    log_bytes_ -= std::min(done.log_bytes, log_bytes_);
    snapshot_bytes_ = *bytes;
    last_taken_ = finished.mark.index;
  }
  return finished;
}

void SnapshotScheduler::resume_if_due(Time now) {
  if (again_at_.has_value() && *again_at_ <= now) {
    again_at_.reset();
  }
}

std::optional<Index> SnapshotScheduler::cut(Index first) {
  if (first <= log_first_) {
    return std::nullopt;
  }
  log_first_ = first;
  return Index{first.get() - 1};
}

bool SnapshotScheduler::may_send(MemberId peer, Index index, Time now) {
  auto& sent = sent_[peer];
  if (sent.index == index && now < sent.at + options_.resend) {
    return false;
  }
  sent = {.index = index, .at = now};
  return true;
}

bool SnapshotScheduler::mark_unreadable(Index newest) {
  if (unreadable_ == newest) {
    return false;
  }
  unreadable_ = newest;
  // The replacement covers more: a snapshot on disk is replaced by a newer one only.
  request(next(newest), [this](const Result<std::uint64_t>& taken) {
    if (!taken) {
      unreadable_.reset();  // The next peer that needs it reports it again.
    }
  });
  return true;
}

}  // namespace tenure::server::raft
