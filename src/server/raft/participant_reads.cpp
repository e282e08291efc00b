#include <utility>

#include "server/raft/participant.hpp"

namespace tenure::server::raft {

void Participant::read(Look look, Time now) {
  arrive(now);
  if (replica_.role() != Role::leader || is_stopping_) {
    look(std::unexpected(not_leading()));
    return;
  }
  // A member that is alone has no rival that could have gone on without it, and whatever was
  // acknowledged has been applied on this thread.
  if (is_alone() && is_ready_) {
    this->look(std::move(look));
    return;
  }
  if (reads_.size() >= options_.reads_max) {
    look(fail(Errc::resource_exhausted, "too many reads are waiting; try again later"));
    return;
  }
  reads_.add(std::move(look), now_ + options_.election_timeout);
  settle();
}

void Participant::peek(Look look, Time now) {
  arrive(now);
  this->look(std::move(look));
}

void Participant::look(Look look) {
  const auto log = position();
  const auto members = this->members();
  const auto now = is_ready_ ? clock_.at(now_) : machine_.state().now;
  look(View{.state = machine_.state(), .log = log, .now = now, .members = members});
}

void Participant::ask_round() {
  const auto round = reads_.begin_round(now_);
  for (const auto& member : members_) {
    if (member.part == Part::voter && member.id != options_.id) {
      surroundings_.send(member.id, Probe{.term = replica_.term(), .round = round});
    }
  }
}

// Whoever knows of no newer term has not voted in one. If a quorum says so, nobody was elected in
// one before, and nothing can have been acknowledged by anybody else. A member that is behind in
// terms may say so as well as one that follows.
void Participant::answer_probe(MemberId sender, const Probe& probe) {
  if (probe.term >= replica_.term()) {
    surroundings_.send(sender, ProbeResult{.term = probe.term, .round = probe.round});
  }
}

void Participant::confirm_reads() {
  if (reads_.is_idle()) {
    return;
  }
  if (is_ready_) {
    for (auto& one : reads_.take_confirmed(members_, options_.id)) {
      look(std::move(one));
    }
  }
  if (reads_.wants_round()) {
    ask_round();
  }
}

void Participant::refuse_reads(std::vector<Look> looks, const Error& error) {
  for (auto& one : looks) {
    one(std::unexpected(error));
  }
}

}  // namespace tenure::server::raft
