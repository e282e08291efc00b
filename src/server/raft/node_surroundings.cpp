#include <algorithm>
#include <cstdlib>
#include <utility>

#include <boost/asio/post.hpp>

#include "server/raft/node.hpp"

namespace tenure::server::raft {

void Node::save_vote(Term term, MemberId voted_for) {
  if (auto saved = votes_.save({.term = term, .voted_for = voted_for}); !saved) {
    stop_process(options_.report,
                 "The vote could not be made durable: " + saved.error().detail + ".");
  }
}

void Node::append(Index first, const std::vector<Entry>& entries) {
  disk_.append(first, entries);
}

void Node::install(const Snapshot& snapshot) {
  disk_.install(snapshot);
}

core::StateMachine Node::restore(const Snapshot& /*snapshot*/, core::StateMachine before) {
  // A large state takes long to destroy.
  errands_.add([before = std::move(before)]() mutable { before = core::StateMachine(); });
  return disk_.take_installed();
}

void Node::cut(Index last) {
  disk_.cut(last);
}

void Node::compact(CompactionPlan plan) {
  compactor_.begin(std::move(plan), [this](Result<std::size_t> bytes) {
    boost::asio::post(loop_, [this, bytes = std::move(bytes)] {
      participant_.compacted(bytes, clock_.now());
      after_event();
    });
  });
}

DiskState Node::disk() const {
  return {.space = journal_->space(),
          .segment_bytes = journal_->segment_bytes(),
          .log_bytes = journal_->bytes()};
}

void Node::send(MemberId peer, Message message) {
  if (transport_ != nullptr && !is_over_) {
    transport_->send(peer, std::move(message));
  }
}

// Reading it takes longer than a leader may be silent, and as much memory as the file has bytes: it
// is read once for a peer, and only if it can go on its way then.
void Node::send_snapshot(MemberId peer, Term term) {
  if (transport_ == nullptr || is_over_ || !transport_->takes_snapshot(peer, term)) {
    return;
  }
  const auto [reading, is_new] = snapshots_being_read_.try_emplace(peer, term);
  reading->second = std::max(reading->second, term);
  if (!is_new) {
    return;
  }
  errands_.add([this, peer] {
    auto snapshot = snapshot_file_->read();
    boost::asio::post(loop_, [this, peer, snapshot = std::move(snapshot)]() mutable {
      const Term newest = snapshots_being_read_.extract(peer).mapped();
      if (snapshot && snapshot->has_value()) {
        send(peer, InstallSnapshot{.term = newest, .snapshot = std::move(**snapshot)});
        return;
      }
      if (is_over_) {
        return;
      }
      const auto error = snapshot ? Error{.code = Errc::unavailable, .detail = "there is none."}
                                  : snapshot.error();
      participant_.snapshot_unreadable(error, clock_.now());
      after_event();
    });
  });
}

std::optional<Versions> Node::versions_of(MemberId peer) const {
  return transport_ != nullptr && !is_over_ ? transport_->versions_of(peer) : std::nullopt;
}

void Node::set_members(const std::vector<Member>& members) {
  if (transport_ != nullptr && !is_over_) {
    transport_->set_members(members);
  }
}

Time Node::local_time() {
  return clock_.now();
}

void Node::drain_soon() {
  boost::asio::post(loop_, [this] { drain(); });
}

void Node::report(Severity severity, const std::string& what) {
  options_.report(severity, what);
}

// A bug of ours, or of the library: here a core file is wanted.
void Node::fatal(const std::string& why) {
  report(Severity::error, "Consensus cannot go on: " + why + ". The server stops now.");
  std::abort();
}

}  // namespace tenure::server::raft
