#include "server/raft/membership.hpp"

#include <algorithm>
#include <utility>

namespace tenure::server::raft {
namespace {

const Member* find_in(const std::vector<Member>& members, MemberId id) {
  const auto found = std::ranges::find(members, id, &Member::id);
  return found == members.end() ? nullptr : &*found;
}

}  // namespace

void Membership::set_newest(const std::vector<Member>& members, Index index, Time now) {
  for (const auto& member : members) {
    // The first configuration that this process sees makes no fresh voter: the change that made a
    // member a voter is unknown then.
    if (!newest_.empty() && member.role == MemberRole::voter && !is_voter(member.id)) {
      fresh_voter_ = {.id = member.id, .index = index};
    }
    if (find(member.id) == nullptr) {
      heard_[member.id] = now;
    }
  }
  newest_ = members;
  newest_index_ = index;
  was_member_ |= find(options_.self) != nullptr;
}

bool Membership::set_committed(const std::vector<Member>& members, Index index, Time now) {
  bool is_self_removed = false;
  for (const auto& member : std::exchange(committed_, members)) {
    if (find_in(members, member.id) != nullptr) {
      continue;
    }
    if (member.id == options_.self) {
      is_self_removed = true;
      continue;
    }
    leaving_.push_back({.member = member,
                        .removed_at = index,
                        .until = now + options_.notice_for,
                        .notice_at = now});
  }
  // A member that was added again gets no more notices.
  std::erase_if(leaving_, [&](const Leaving& leaving) {
    return find_in(members, leaving.member.id) != nullptr;
  });
  return is_self_removed;
}

const Member* Membership::find(MemberId id) const {
  return find_in(newest_, id);
}

bool Membership::is_voter(MemberId id) const {
  const auto* member = find(id);
  return member != nullptr && member->role == MemberRole::voter;
}

std::size_t Membership::voters() const {
  return static_cast<std::size_t>(std::ranges::count(newest_, MemberRole::voter, &Member::role));
}

bool Membership::is_alone() const {
  return newest_.size() == 1 && newest_.front().id == options_.self;
}

std::optional<std::vector<Member>> Membership::changed_peers() {
  auto all = newest_;
  const auto add = [&all](const Member& member) {
    if (find_in(all, member.id) == nullptr) {
      all.push_back(member);
    }
  };
  std::ranges::for_each(committed_, add);
  std::ranges::for_each(leaving_, add, &Leaving::member);
  if (all == peers_) {
    return std::nullopt;
  }
  peers_ = all;
  return all;
}

void Membership::heard(MemberId sender, Time now) {
  // A sender that is no member gets no entry, so the map stays small.
  if (find(sender) != nullptr) {
    heard_[sender] = now;
  }
}

void Membership::hear_all(Time now) {
  for (const auto& member : newest_) {
    heard_[member.id] = now;
  }
}

Time::duration Membership::silence(MemberId member, Time now) const {
  const auto heard = heard_.find(member);
  return heard == heard_.end() ? Time::duration{} : now - heard->second;
}

bool Membership::was_heard_within(std::chrono::milliseconds time, MemberId member, Time now) const {
  return heard_.contains(member) && silence(member, now) < time;
}

std::vector<Membership::Notice> Membership::take_due_notices(Time now) {
  // Notices repeat until the time is over, because each may get lost.
  std::vector<Notice> due;
  for (auto& leaving : leaving_) {
    if (leaving.notice_at <= now) {
      leaving.notice_at = now + options_.notice_every;
      due.push_back({.to = leaving.member.id, .removed_at = leaving.removed_at});
    }
  }
  std::erase_if(leaving_, [now](const Leaving& leaving) { return leaving.until <= now; });
  return due;
}

bool Membership::is_removed_peer(MemberId sender) const {
  return !committed_.empty() && find(sender) == nullptr && find_in(committed_, sender) == nullptr;
}

std::optional<Time> Membership::deadline() const {
  std::optional<Time> earliest;
  for (const auto& leaving : leaving_) {
    keep_earlier(earliest, leaving.notice_at);
  }
  return earliest;
}

bool Membership::receive_notice(Index index) {
  if (index <= newest_index_ || index <= noticed_at_) {
    return false;
  }
  noticed_at_ = index;
  return true;
}

bool Membership::is_removed() const {
  return noticed_at_ > newest_index_ || (was_member_ && find(options_.self) == nullptr &&
                                         find_in(committed_, options_.self) == nullptr);
}

}  // namespace tenure::server::raft
