#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "server/raft/participant.hpp"

namespace tenure::server::raft {
namespace {

// R2: fewer would let the library elect a sole voter without a vote.
constexpr std::size_t voters_min = 3;

std::string named(std::uint64_t id) {
  return "member " + std::to_string(id);
}

MemberId subject(const MemberChange& change) {
  return MemberId{std::visit([](const auto& what) { return what.id; }, change)};
}

bool is_address(const std::string& text) {
  return !text.empty() && text.find_first_of(" \n\r\t") == std::string::npos;
}

}  // namespace

void Participant::change_members(MemberChange change, Done done, Time now) {
  arrive(now);
  if (!is_ready_ || is_stopping_) {
    done(std::unexpected(not_leading()));
    return;
  }
  if (is_alone()) {
    done(fail(Errc::unsupported,
              "a member that is alone stays alone; stop it, and let its state "
              "seed a new cluster of three"));
    return;
  }
  if (change_.has_value()) {
    done(fail(Errc::would_block, "another change of the members is under way"));
    return;
  }
  auto checked = std::visit([this](const auto& what) { return check(what); }, change);
  if (!checked) {
    done(std::move(checked));
    return;
  }
  change_ = Change{.what = std::move(change),
                   .done = std::move(done),
                   .until = now_ + 10 * options_.election_timeout};
  settle();
}

Result<void> Participant::check(const AddMember& change) const {
  if (change.id == 0 || !is_address(change.peer_address) || !is_address(change.client_address) ||
      change.peer_address.size() + change.client_address.size() > member_addresses_bytes_max) {
    return fail(Errc::invalid_argument,
                "a new member needs an id that is not 0 and two addresses, host:port");
  }
  for (const auto& member : members_) {
    if (member.id.get() == change.id) {
      const bool is_same =
          member.peer == change.peer_address && member.client == change.client_address;
      if (member.part == Part::voter || !is_same) {
        return fail(Errc::invalid_argument, named(change.id) + " is there already, at " +
                                                member.peer + " and " + member.client);
      }
    } else if (member.peer == change.peer_address || member.client == change.client_address) {
      return fail(Errc::invalid_argument,
                  "the addresses belong to " + named(member.id.get()) + " already");
    }
  }
  return {};
}

Result<void> Participant::check(const RemoveMember& change) const {
  const auto* member = find(MemberId{change.id});
  if (member == nullptr) {
    return fail(Errc::invalid_argument, "there is no " + named(change.id));
  }
  if (member->part == Part::voter && voters() <= voters_min) {
    return fail(Errc::invalid_argument,
                "three voters must stay; add the new member before the old one is removed");
  }
  return {};
}

// A change of a former leader may be in somebody's log, and in no other that we know of. Two lists
// that differ in two members have quorums that do not meet; only an entry of our own term that is
// committed keeps whoever has the other list from being elected with it (Ongaro, "bug in
// single-server membership changes", raft-dev, 2015).
//
// R8: a voter that does not know yet that it is one cannot lead, and if the next change took
// another one away there might be nobody left who can. One more takes nobody away, and whoever was
// added last may be dead: it could not be replaced if that waited for its answer.
bool Participant::may_change(const MemberChange& change) const {
  if (!replica_.has_committed_own_term() || replica_.is_changing() || transfer_.has_value()) {
    return false;
  }
  if (std::holds_alternative<AddMember>(change) || !fresh_voter_.has_value() ||
      fresh_voter_->id == subject(change) || fresh_voter_->id == options_.id) {
    return true;
  }
  const auto* fresh = find(fresh_voter_->id);
  return fresh == nullptr || fresh->part != Part::voter ||
         replica_.match(fresh_voter_->id).value_or(Index{}) >= fresh_voter_->index;
}

// Each step may make the next one possible.
void Participant::advance_change() {
  while (change_.has_value()) {
    const auto before = std::pair(change_->phase, change_->index);
    const bool is_applied = replica_.applied() >= change_->index;
    switch (change_->phase) {
      case Change::Phase::waiting: begin_change(); break;
      case Change::Phase::handing_over: break;
      case Change::Phase::adding:
        if (is_applied) {
          begin_catching_up();
        }
        break;
      case Change::Phase::catching_up: watch_catching_up(); break;
      case Change::Phase::promoting: {
        const auto match = replica_.match(subject(change_->what)).value_or(Index{});
        // It counts when it is committed; that it knows is only needed for the next change.
        if (is_applied && (match >= change_->index || change_->until <= now_)) {
          end_change({});
        }
        break;
      }
      case Change::Phase::removing:
        if (is_applied) {
          end_change({});
        }
        break;
    }
    if (change_.has_value() && std::pair(change_->phase, change_->index) == before) {
      return;
    }
  }
}

std::string Participant::why_no_change() const {
  if (!replica_.has_committed_own_term()) {
    return "nothing is committed since this member leads; a majority does not answer";
  }
  return "the last change of the members is not finished: " +
         (fresh_voter_.has_value()
              ? named(fresh_voter_->id.get()) +
                    ", which was added last, does not answer; start it, or remove it"
              : std::string("it is not committed yet"));
}

void Participant::begin_change() {
  if (!may_change(change_->what)) {
    if (change_->until <= now_) {
      end_change(fail(Errc::would_block, why_no_change()));
    } else {
      begin_own_term();
    }
    return;
  }
  if (const auto* adding = std::get_if<AddMember>(&change_->what)) {
    begin_adding(*adding);
  } else {
    begin_removing(std::get<RemoveMember>(change_->what));
  }
}

void Participant::begin_adding(const AddMember& adding) {
  if (find(MemberId{adding.id}) != nullptr) {
    begin_catching_up();
    return;
  }
  auto members = members_;
  members.push_back({.id = MemberId{adding.id},
                     .part = Part::standby,
                     .peer = adding.peer_address,
                     .client = adding.client_address});
  submit_members(members, Change::Phase::adding);
}

void Participant::begin_removing(const RemoveMember& removing) {
  const MemberId id{removing.id};
  if (id == options_.id) {
    change_->phase = Change::Phase::handing_over;
    // When it succeeds, the loss of the leadership ends the change.
    begin_transfer(best_successor(), [this](Result<void> result) {
      if (!result) {
        end_change(std::move(result));
      }
    });
    return;
  }
  auto members = members_;
  std::erase_if(members, [id](const Member& member) { return member.id == id; });
  submit_members(members, Change::Phase::removing);
}

void Participant::submit_members(const std::vector<Member>& members, Change::Phase phase) {
  const auto index = replica_.change(members);
  if (!index) {
    end_change(std::unexpected(index.error()));
    return;
  }
  change_->phase = phase;
  change_->index = *index;
  change_->until = now_ + 10 * options_.election_timeout;
}

// Whether the stand-by can read the log is known when it is connected; it gets some time for that.
//
// A stand-by that has everything already would never be reported to have caught up.
void Participant::begin_catching_up() {
  const auto id = subject(change_->what);
  if (!versions_of(id).has_value() && now_ < change_->until) {
    return;
  }
  if (is_too_old(id)) {
    end_change(fail(Errc::invalid_argument, complaint_about_version(id) +
                                                ", and add it again. Until then it is a stand-by"));
    return;
  }
  if (replica_.match(id).value_or(Index{}) == replica_.log().last()) {
    promote();
    return;
  }
  if (auto begun = replica_.catch_up(id); !begun) {
    end_change(std::move(begun));
    return;
  }
  change_->phase = Change::Phase::catching_up;
}

void Participant::watch_catching_up() {
  const auto id = subject(change_->what);
  switch (replica_.catch_up_status(id)) {
    case CatchUp::running: return;
    case CatchUp::finished: promote(); return;
    case CatchUp::aborted:
    case CatchUp::none:
      end_change(fail(Errc::timed_out,
                      named(id.get()) + " did not catch up with the log; it stays a stand-by. Ask "
                                        "again when it runs, or remove it"));
      return;
  }
}

void Participant::promote() {
  auto members = members_;
  const auto found = std::ranges::find(members, subject(change_->what), &Member::id);
  if (found == members.end()) {
    end_change(fail(Errc::unavailable, "the stand-by is gone"));
    return;
  }
  found->part = Part::voter;
  submit_members(members, Change::Phase::promoting);
}

void Participant::end_change(Result<void> result) {
  if (auto change = std::exchange(change_, std::nullopt)) {
    change->done(std::move(result));
  }
}

}  // namespace tenure::server::raft
