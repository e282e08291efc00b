#include "server/raft/membership_change.hpp"

#include <algorithm>
#include <utility>

#include "server/raft/versions.hpp"

namespace tenure::server::raft {
namespace {

// R2: libraft would elect a sole voter without a vote.
constexpr std::size_t voters_min = 3;

std::string named(std::uint64_t id) {
  return "member " + std::to_string(id);
}

bool is_address(const std::string& text) {
  return !text.empty() && text.find_first_of(" \n\r\t") == std::string::npos;
}

Result<void> check_change(const AddMember& change, const Membership& members) {
  if (change.id == 0 || !is_address(change.peer_address) || !is_address(change.client_address) ||
      change.peer_address.size() + change.client_address.size() > member_addresses_bytes_max) {
    return fail(Errc::invalid_argument,
                "a new member needs an id other than 0 and two addresses (host:port)");
  }
  for (const auto& member : members.newest()) {
    if (member.id.get() == change.id) {
      const bool is_same =
          member.peer == change.peer_address && member.client == change.client_address;
      if (member.role == MemberRole::voter || !is_same) {
        return fail(Errc::invalid_argument, named(change.id) + " exists already, at " +
                                                member.peer + " and " + member.client);
      }
    } else if (member.peer == change.peer_address || member.client == change.client_address) {
      return fail(Errc::invalid_argument, "the addresses belong to " + named(member.id.get()));
    }
  }
  return {};
}

Result<void> check_change(const RemoveMember& change, const Membership& members) {
  const auto* member = members.find(MemberId{change.id});
  if (member == nullptr) {
    return fail(Errc::invalid_argument, "unknown " + named(change.id));
  }
  if (member->role == MemberRole::voter && members.voters() <= voters_min) {
    return fail(
        Errc::invalid_argument,
        "a cluster needs three voters; add the new member before the removal of the old one");
  }
  return {};
}

std::string why_not_begun(const MembershipChange::Group& group) {
  if (!group.has_committed_own_term) {
    return "nothing is committed since this member leads; a majority does not answer";
  }
  const auto& fresh_voter = group.members.fresh_voter();
  return "the previous membership change is not finished: " +
         (fresh_voter.has_value()
              ? named(fresh_voter->id.get()) +
                    ", the newest voter, does not respond; start it, or remove it"
              : std::string("it is not committed yet"));
}

}  // namespace

Result<void> MembershipChange::check(const MemberChange& change, const Membership& members) {
  return std::visit([&](const auto& what) { return check_change(what, members); }, change);
}

void MembershipChange::begin(MemberChange change, Done done, Time now) {
  change_ =
      Change{.what = std::move(change), .done = std::move(done), .until = now + options_.timeout};
}

MemberId MembershipChange::subject() const {
  return MemberId{std::visit([](const auto& what) { return what.id; }, change_->what)};
}

std::optional<MembershipChange::Step> MembershipChange::next_step(const Group& group, Time now) {
  if (!change_.has_value()) {
    return std::nullopt;
  }
  const bool is_applied = group.applied >= change_->index;
  switch (change_->phase) {
    case Phase::waiting: return begin_step(group, now);
    case Phase::handing_over: return std::nullopt;
    case Phase::adding: return is_applied ? catch_up_step(group, now) : std::nullopt;
    case Phase::catching_up: return watch_step(group);
    case Phase::promoting:
      // The vote counts when it is committed; the acknowledgement is for the next change only.
      if (is_applied && (group.subject_match >= change_->index || change_->until <= now)) {
        end({});
      }
      return std::nullopt;
    case Phase::removing:
      if (is_applied) {
        end({});
      }
      return std::nullopt;
  }
  return std::nullopt;
}

// A change of a former leader may be in the log of a member, unknown to this leader. Two
// configurations that differ in two members have quorums that do not meet; only a committed entry
// of this leader's own term keeps a member with the other configuration from being elected with it
// (Ongaro, "bug in single-server membership changes", raft-dev, 2015).
//
// R8: a voter that does not know of its promotion cannot lead. A removal could leave no member that
// can lead, so it waits for the acknowledgement of the newest voter. An addition removes no member
// and does not wait: the newest voter may be dead and has to be replaceable.
bool MembershipChange::may_begin(const Group& group) const {
  if (!group.has_committed_own_term || group.is_changing || group.is_transferring) {
    return false;
  }
  const auto& fresh_voter = group.members.fresh_voter();
  if (std::holds_alternative<AddMember>(change_->what) || !fresh_voter.has_value() ||
      fresh_voter->id == subject() || fresh_voter->id == options_.self) {
    return true;
  }
  return !group.members.is_voter(fresh_voter->id) || group.fresh_voter_match >= fresh_voter->index;
}

std::optional<MembershipChange::Step> MembershipChange::begin_step(const Group& group, Time now) {
  if (!may_begin(group)) {
    if (change_->until > now) {
      return CommitOwnTerm{};
    }
    end(fail(Errc::would_block, why_not_begun(group)));
    return std::nullopt;
  }
  const auto id = subject();
  auto members = group.members.newest();
  if (const auto* adding = std::get_if<AddMember>(&change_->what)) {
    if (group.members.find(id) != nullptr) {
      return catch_up_step(group, now);
    }
    members.push_back({.id = id,
                       .role = MemberRole::learner,
                       .peer = adding->peer_address,
                       .client = adding->client_address});
    return submit(std::move(members), Phase::adding);
  }
  if (id == options_.self) {
    change_->phase = Phase::handing_over;
    return HandOver{};
  }
  std::erase_if(members, [id](const Member& member) { return member.id == id; });
  return submit(std::move(members), Phase::removing);
}

// Whether the learner can read the log is known when it is connected.
std::optional<MembershipChange::Step> MembershipChange::catch_up_step(const Group& group,
                                                                      Time now) {
  const auto& versions = group.subject_versions;
  if (!versions.has_value() && now < change_->until) {
    return std::nullopt;
  }
  if (is_too_old(versions, group.version)) {
    end(fail(Errc::invalid_argument, too_old_text(subject(), versions, group.version) +
                                         ", and add it again. Until then it is a learner"));
    return std::nullopt;
  }
  // libraft never reports that a learner has caught up if it has everything already.
  if (group.subject_match == group.last) {
    return promote_step(group);
  }
  return WatchLearner{.id = subject()};
}

std::optional<MembershipChange::Step> MembershipChange::watch_step(const Group& group) {
  switch (group.catch_up) {
    case CatchUp::running: return std::nullopt;
    case CatchUp::finished: return promote_step(group);
    case CatchUp::aborted:
    case CatchUp::none: break;
  }
  end(fail(Errc::timed_out, named(subject().get()) +
                                " did not catch up with the log; it stays a learner. Add it again "
                                "when it runs, or remove it"));
  return std::nullopt;
}

std::optional<MembershipChange::Step> MembershipChange::promote_step(const Group& group) {
  auto members = group.members.newest();
  const auto found = std::ranges::find(members, subject(), &Member::id);
  if (found == members.end()) {
    end(fail(Errc::unavailable, "the learner was removed"));
    return std::nullopt;
  }
  found->role = MemberRole::voter;
  return submit(std::move(members), Phase::promoting);
}

MembershipChange::Step MembershipChange::submit(std::vector<Member> members, Phase phase) {
  change_->submitting = phase;
  return SubmitMembers{.members = std::move(members)};
}

void MembershipChange::submitted(const Result<Index>& index, Time now) {
  if (!change_.has_value()) {
    return;
  }
  if (!index) {
    end(std::unexpected(index.error()));
    return;
  }
  change_->phase = change_->submitting;
  change_->index = *index;
  change_->until = now + options_.timeout;
}

void MembershipChange::catching_up(const Result<void>& begun) {
  if (!change_.has_value()) {
    return;
  }
  if (!begun) {
    end(begun);
    return;
  }
  change_->phase = Phase::catching_up;
}

void MembershipChange::end(Result<void> result) {
  if (auto change = std::exchange(change_, std::nullopt)) {
    change->done(std::move(result));
  }
}

std::optional<Time> MembershipChange::deadline(Time now) const {
  return change_.has_value() && change_->until > now ? std::optional(change_->until) : std::nullopt;
}

}  // namespace tenure::server::raft
