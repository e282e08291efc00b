#include <utility>

#include "core/snapshot.hpp"
#include "server/raft/node.hpp"

namespace tenure::server::raft {

std::chrono::milliseconds Node::now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

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

void Node::send(MemberId /*peer*/, Message /*message*/) {
  // Alone: there are no peers yet.
}

void Node::send_snapshot(MemberId /*peer*/, Term /*term*/) {
  // Alone: there are no peers yet.
}

void Node::apply(Index index, const Entry& entry) {
  if (entry.type == EntryType::command) {
    log_bytes_ += entry.payload->size();
  }
  if (flights_.empty() || flights_.front().index != index) {
    apply_foreign(entry);
    return;
  }
  auto flight = std::move(flights_.front());
  flights_.pop_front();
  apply_own(std::move(flight));
}

void Node::restore(const Snapshot& snapshot) {
  auto state = core::decode(*snapshot.body);
  if (!state) {
    stop_process(options_.report, "The snapshot that the leader sent cannot be restored: " +
                                      state.error().detail + ".");
  }
  machine_ = core::StateMachine(std::move(*state));
  log_bytes_ = 0;
  snapshot_bytes_ = snapshot_file_->bytes();
}

void Node::role_changed(Role role) {
  if (role == Role::leader) {
    past_ = replica_.log().last();
    return;
  }
  const bool was_ready = std::exchange(is_ready_, false);
  past_.reset();
  is_tick_on_its_way_ = false;
  own_commands_.clear();
  give_up_all(
      {.code = Errc::unavailable,
       .detail = "this member lost the leadership; what became of the request is not known"});
  if (was_ready) {
    tell_all([log = position()](Listener& listener) { listener.role_changed(log); });
  }
}

void Node::fatal(const std::string& why) {
  stop_process(options_.report, "Consensus cannot go on: " + why + ".");
}

}  // namespace tenure::server::raft
