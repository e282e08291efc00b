#include <utility>

#include "server/raft/participant.hpp"

namespace tenure::server::raft {

std::chrono::milliseconds Participant::now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch());
}

void Participant::save_vote(Term term, MemberId voted_for) {
  surroundings_.save_vote(term, voted_for);
}

void Participant::append(Index first, const std::vector<Entry>& entries) {
  ++writing_;
  surroundings_.append(first, entries);
}

void Participant::install(const Snapshot& snapshot) {
  ++writing_;
  surroundings_.install(snapshot);
}

void Participant::send(MemberId peer, Message message) {
  const auto* append = std::get_if<AppendEntries>(&message);
  if (append != nullptr && !append->entries.empty() && must_not_read(peer)) {
    return;
  }
  surroundings_.send(peer, std::move(message));
}

// While the peer does not have it yet, it refuses every heartbeat, and the library wants to send it
// once more.
void Participant::send_snapshot(MemberId peer, Term term) {
  if (must_not_read(peer)) {
    return;
  }
  auto& sent = snapshots_sent_[peer];
  if (sent.index == replica_.snapshot().index && now_ < sent.at + 4 * options_.election_timeout) {
    return;
  }
  sent = {.index = replica_.snapshot().index, .at = now_};
  surroundings_.send_snapshot(peer, term);
}

void Participant::apply(Index index, const Entry& entry) {
  if (entry.type == EntryType::command) {
    log_bytes_ += entry.payload->size();
  }
  if (entry.type == EntryType::change) {
    apply_members(index, decode_members(*entry.payload));
    return;
  }
  const auto version = machine_.state().version;
  if (flights_.empty() || flights_.front().index != index || flights_.front().term != entry.term) {
    apply_foreign(entry);
  } else {
    auto flight = std::move(flights_.front());
    flights_.pop_front();
    apply_own(std::move(flight));
  }
  version_applied(version, index);
}

void Participant::restore(const Snapshot& snapshot) {
  machine_ = surroundings_.restore(snapshot, std::move(machine_));
  log_bytes_ = 0;
  snapshot_bytes_ = snapshot.body->size();
  apply_members(snapshot.mark.configuration_index, decode_members(snapshot.mark.configuration));
  for (auto* listener : listeners_) {
    listener->restored(machine_.state());
  }
}

void Participant::role_changed(Role role) {
  if (role == Role::leader) {
    past_ = replica_.log().last();
    snapshots_sent_.clear();
    for (const auto& member : members_) {
      heard_[member.id] = now_;
    }
    return;
  }
  const bool was_ready = std::exchange(is_ready_, false);
  past_.reset();
  is_tick_on_its_way_ = false;
  own_commands_.clear();
  own_again_at_.reset();
  version_to_set_.reset();
  version_again_at_.reset();
  too_old_.clear();
  give_up_flights(
      {.code = Errc::unavailable,
       .detail = "this member lost the leadership; what became of the request is not known: ask "
                 "again with the same request id"});
  refuse_reads(reads_.take_all(),
               {.code = Errc::unavailable, .detail = "this member lost the leadership"});
  end_change(fail(Errc::unavailable,
                  "this member lost the leadership; look at the members before asking again"));
  if (transfer_.has_value()) {
    transfer_->is_over = true;
  }
  if (was_ready) {
    tell_role();
  }
}

void Participant::fatal(const std::string& why) {
  surroundings_.fatal(why);
}

}  // namespace tenure::server::raft
