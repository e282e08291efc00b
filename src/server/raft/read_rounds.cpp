#include "server/raft/read_rounds.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace tenure::server::raft {

std::vector<Store::Look> ReadRounds::take_confirmed(const std::vector<Member>& members,
                                                    MemberId self) {
  std::vector<std::uint64_t> newest;
  for (const auto& member : members) {
    if (member.part == Part::voter) {
      const auto answer = answers_.find(member.id);
      newest.push_back(member.id == self ? round_ : answer == answers_.end() ? 0 : answer->second);
    }
  }
  if (newest.empty()) {
    return {};
  }
  // Of n voters n/2 + 1 are a quorum: the newest round that so many have answered.
  std::ranges::sort(newest, std::greater());
  confirmed_ = std::max(confirmed_, newest[newest.size() / 2]);
  std::vector<Store::Look> looks;
  while (!waiting_.empty() && waiting_.front().round <= confirmed_) {
    looks.push_back(std::move(waiting_.front().look));
    waiting_.pop_front();
  }
  return looks;
}

std::vector<Store::Look> ReadRounds::take_expired(Time now) {
  std::vector<Store::Look> looks;
  while (!waiting_.empty() && waiting_.front().until <= now) {
    looks.push_back(std::move(waiting_.front().look));
    waiting_.pop_front();
  }
  return looks;
}

std::vector<Store::Look> ReadRounds::take_all() {
  std::vector<Store::Look> looks;
  for (auto& waiting : std::exchange(waiting_, {})) {
    looks.push_back(std::move(waiting.look));
  }
  // A round of a former leadership proves nothing in this one: its numbers are not used again.
  confirmed_ = round_;
  return looks;
}

}  // namespace tenure::server::raft
