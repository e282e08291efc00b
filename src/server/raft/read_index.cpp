#include "server/raft/read_index.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace tenure::server::raft {

void ReadIndex::add(Store::OnRead on_read, Time now) {
  waiting_.push_back(
      {.on_read = std::move(on_read), .round = round_ + 1, .until = now + options_.timeout});
}

std::optional<std::uint64_t> ReadIndex::next_round(Time now) {
  if (waiting_.empty()) {
    return std::nullopt;
  }
  const bool is_wanted = waiting_.back().round > round_ && confirmed_ >= round_;
  if (!is_wanted && now < began_at_ + options_.repeat) {
    return std::nullopt;
  }
  began_at_ = now;
  return ++round_;
}

void ReadIndex::acknowledge(MemberId voter, std::uint64_t round) {
  auto& newest = acknowledged_[voter];
  newest = std::max(newest, round);
}

std::vector<Store::OnRead> ReadIndex::take_confirmed(const std::vector<Member>& members) {
  if (waiting_.empty()) {
    return {};
  }
  std::vector<std::uint64_t> newest;
  for (const auto& member : members) {
    if (member.role == MemberRole::voter) {
      const auto found = acknowledged_.find(member.id);
      const auto acknowledged = found == acknowledged_.end() ? 0 : found->second;
      // The leader acknowledges its own rounds at once.
      newest.push_back(member.id == options_.self ? round_ : acknowledged);
    }
  }
  if (newest.empty()) {
    return {};
  }
  // A quorum of n voters has n/2 + 1: the newest round that as many have acknowledged.
  std::ranges::sort(newest, std::greater());
  confirmed_ = std::max(confirmed_, newest[newest.size() / 2]);
  const auto end = std::ranges::find_if(
      waiting_, [this](const Waiting& waiting) { return waiting.round > confirmed_; });
  return take_front(static_cast<std::size_t>(end - waiting_.begin()));
}

std::vector<Store::OnRead> ReadIndex::take_expired(Time now) {
  const auto end =
      std::ranges::find_if(waiting_, [now](const Waiting& waiting) { return waiting.until > now; });
  return take_front(static_cast<std::size_t>(end - waiting_.begin()));
}

std::vector<Store::OnRead> ReadIndex::take_all() {
  // A round of a former leadership proves nothing in this one.
  confirmed_ = round_;
  return take_front(waiting_.size());
}

std::vector<Store::OnRead> ReadIndex::take_front(std::size_t count) {
  std::vector<Store::OnRead> reads;
  reads.reserve(count);
  for (; count > 0; --count) {
    reads.push_back(std::move(waiting_.front().on_read));
    waiting_.pop_front();
  }
  return reads;
}

std::optional<Time> ReadIndex::deadline() const {
  if (waiting_.empty()) {
    return std::nullopt;
  }
  return std::min(waiting_.front().until, began_at_ + options_.repeat);
}

}  // namespace tenure::server::raft
