#include <algorithm>
#include <utility>

#include "server/raft/participant.hpp"

namespace tenure::server::raft {
namespace {

const Member* find_in(const std::vector<Member>& members, MemberId id) {
  const auto found = std::ranges::find(members, id, &Member::id);
  return found == members.end() ? nullptr : &*found;
}

bool is_voter_in(const std::vector<Member>& members, MemberId id) {
  const auto* member = find_in(members, id);
  return member != nullptr && member->part == Part::voter;
}

}  // namespace

const Member* Participant::find(MemberId id) const {
  return find_in(members_, id);
}

std::size_t Participant::voters() const {
  return static_cast<std::size_t>(std::ranges::count(members_, Part::voter, &Member::part));
}

std::vector<MemberStatus> Participant::members() const {
  std::vector<MemberStatus> all;
  all.reserve(members_.size());
  const bool leads = replica_.role() == Role::leader;
  for (const auto& member : members_) {
    MemberStatus status{.id = member.id.get(),
                        .is_voter = member.part == Part::voter,
                        .peer_address = member.peer,
                        .client_address = member.client};
    if (const auto versions = versions_of(member.id)) {
      status.newest_version = versions->newest.get();
    }
    if (member.id == options_.id) {
      status.match = replica_.log().last().get();
    } else if (leads) {
      const auto heard = heard_.find(member.id);
      status.match = replica_.match(member.id).value_or(Index{}).get();
      status.silent = std::chrono::duration_cast<std::chrono::milliseconds>(
          heard == heard_.end() ? Time::duration{} : now_ - heard->second);
    }
    all.push_back(std::move(status));
  }
  return all;
}

// Called as soon as the list is in the log, because it counts from then on.
void Participant::members_changed(const std::vector<Member>& members) {
  for (const auto& member : members) {
    if (!members_.empty() && member.part == Part::voter && !is_voter_in(members_, member.id)) {
      fresh_voter_ = {.id = member.id, .index = replica_.newest_configuration_index()};
    }
    if (find(member.id) == nullptr) {
      heard_[member.id] = now_;
    }
  }
  members_ = members;
  was_member_ |= find(options_.id) != nullptr;
  publish_members();
}

void Participant::apply_members(Index index, const std::vector<Member>& members) {
  for (const auto& member : std::exchange(committed_, members)) {
    if (find_in(members, member.id) != nullptr) {
      continue;
    }
    if (member.id == options_.id) {
      report_dismissal(index);
      continue;
    }
    leaving_.push_back({.member = member,
                        .index = index,
                        .until = now_ + 4 * options_.election_timeout,
                        .tell_at = now_});
  }
  std::erase_if(leaving_, [&](const Leaving& leaving) {
    return find_in(members, leaving.member.id) != nullptr;
  });
  publish_members();
}

// Those who are leaving can be told so only as long as the transport knows them.
void Participant::publish_members() {
  auto all = members_;
  const auto add = [&](const Member& member) {
    if (find_in(all, member.id) == nullptr) {
      all.push_back(member);
    }
  };
  std::ranges::for_each(committed_, add);
  std::ranges::for_each(leaving_, add, &Leaving::member);
  if (all != published_) {
    published_ = all;
    surroundings_.set_members(published_);
  }
}

void Participant::tell_the_leaving() {
  for (auto& leaving : leaving_) {
    if (leaving.tell_at <= now_) {
      leaving.tell_at = now_ + options_.heartbeat;
      if (replica_.role() == Role::leader) {
        surroundings_.send(leaving.member.id, Dismissal{.index = leaving.index});
      }
    }
  }
  const auto gone =
      std::erase_if(leaving_, [this](const Leaving& leaving) { return leaving.until <= now_; });
  if (gone > 0) {
    publish_members();
  }
}

// A member that was away when it was removed, and now wants to be elected.
void Participant::tell_stranger(MemberId sender, const Message& message) {
  if (std::holds_alternative<RequestVote>(message) && find(sender) == nullptr &&
      find_in(committed_, sender) == nullptr && !committed_.empty()) {
    surroundings_.send(sender, Dismissal{.index = replica_.configuration_index()});
  }
}

// Somebody who is behind us may not know yet that we were added.
void Participant::receive_dismissal(const Dismissal& dismissal) {
  if (dismissal.index <= replica_.newest_configuration_index() ||
      dismissal.index <= dismissed_at_) {
    return;
  }
  dismissed_at_ = dismissal.index;
  report_dismissal(dismissal.index);
}

void Participant::report_dismissal(Index index) {
  surroundings_.report(Severity::warning,
                       "this member was removed from the cluster by entry " +
                           std::to_string(index.get()) +
                           " of the log: it takes no part any more. Stop it; nobody needs its "
                           "folder.");
}

bool Participant::is_dismissed() const {
  if (dismissed_at_ > replica_.newest_configuration_index()) {
    return true;
  }
  return was_member_ && find(options_.id) == nullptr && find_in(committed_, options_.id) == nullptr;
}

// The leadership ---------------------------------------------------------------------------------

void Participant::transfer_leadership(MemberId to, Done done, Time now) {
  arrive(now);
  if (!is_ready_ || is_stopping_) {
    done(std::unexpected(not_leading()));
    return;
  }
  if (transfer_.has_value()) {
    done(fail(Errc::would_block, "the leadership is being handed over already"));
    return;
  }
  const auto chosen = to == MemberId{} ? best_successor() : to;
  if (chosen == MemberId{} || chosen == options_.id || !is_voter_in(members_, chosen)) {
    done(fail(Errc::invalid_argument,
              chosen == MemberId{}    ? "there is no other member that could lead"
              : chosen == options_.id ? "this member leads already"
                                      : "only a member that votes can lead"));
    return;
  }
  begin_transfer(chosen, std::move(done));
  settle();
}

// Of those that were heard of lately the one with most of the log.
MemberId Participant::best_successor() const {
  MemberId best{};
  auto best_rank = std::pair(false, Index{});
  for (const auto& member : members_) {
    const auto match = replica_.match(member.id);
    if (member.part != Part::voter || member.id == options_.id || !match.has_value() ||
        doubts_.contains(member.id)) {
      continue;
    }
    const auto rank = std::pair(was_heard_lately(member.id), *match);
    if (best == MemberId{} || rank > best_rank) {
      best = member.id;
      best_rank = rank;
    }
  }
  return best;
}

bool Participant::was_heard_lately(MemberId member) const {
  const auto heard = heard_.find(member);
  return heard != heard_.end() && now_ - heard->second < options_.election_timeout;
}

// A rejection that was on its way for long looks the same, and must be left out (R4). But one that
// comes again and again, with nothing accepted in between, is the truth: the disk of that member
// lost what it had promised to keep.
void Participant::doubt(MemberId sender, const Message& message) {
  const auto* result = std::get_if<AppendResult>(&message);
  if (result == nullptr || result->term != replica_.term() || replica_.role() != Role::leader) {
    return;
  }
  const auto match = replica_.match(sender);
  if (!match.has_value() || result->rejected == Index{} || result->last >= *match) {
    doubts_.erase(sender);
    return;
  }
  const auto since = doubts_.try_emplace(sender, now_).first->second;
  if (now_ - since >= 2 * options_.election_timeout) {
    mend_forgetful(sender, result->last, *match);
  }
}

// The library never goes back behind what it once knew of a member, so this leader cannot send what
// is missing. The next one can: it begins by asking everybody.
void Participant::mend_forgetful(MemberId member, Index has, Index acknowledged) {
  doubts_[member] = now_ + 8 * options_.election_timeout;
  surroundings_.report(Severity::error,
                       "member " + std::to_string(member.get()) +
                           " has lost entries: it has the log up to " + std::to_string(has.get()) +
                           " and had acknowledged it up to " + std::to_string(acknowledged.get()) +
                           ". Its disk does not keep what it promises: replace it. The leadership "
                           "changes now, so that the member gets what it lost.");
  for (auto* listener : listeners_) {
    listener->member_lost_entries();
  }
  const auto successor = best_successor();
  if (is_ready_ && !transfer_.has_value() && was_heard_lately(successor)) {
    begin_transfer(successor, [](const Result<void>& /*either way it is tried again*/) {});
  }
}

void Participant::begin_transfer(MemberId to, Done done) {
  if (auto begun = replica_.transfer(to); !begun) {
    done(std::move(begun));
    return;
  }
  // The library gives up after an election timeout, when it sends the next heartbeats.
  transfer_ = Transfer{.to = to,
                       .done = std::move(done),
                       .until = now_ + options_.election_timeout + 2 * options_.heartbeat};
}

void Participant::check_transfer() {
  if (!transfer_.has_value()) {
    return;
  }
  if (transfer_->is_over) {
    end_transfer({});
  } else if (transfer_->until <= now_) {
    end_transfer(fail(Errc::timed_out, "member " + std::to_string(transfer_->to.get()) +
                                           " did not take over in time; this member goes on "
                                           "leading"));
  }
}

void Participant::end_transfer(Result<void> result) {
  if (auto transfer = std::exchange(transfer_, std::nullopt)) {
    transfer->done(std::move(result));
  }
}

}  // namespace tenure::server::raft
