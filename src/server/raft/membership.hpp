#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "server/raft/entry.hpp"
#include "server/raft/time.hpp"

namespace tenure::server::raft {

/// Members of the group as this member knows them: the newest configuration, which is in effect,
/// the committed one, the time of the last contact with each member, and the notices for removed
/// members. A removed member gets no entries, so it learns of its removal by a notice only
/// (Ongaro's thesis, 4.2.2). Decides only; the owner sends. Not thread safe.
class Membership {
 public:
  struct Options {
    MemberId self{};
    /// Time for which the leader sends notices to a removed member.
    std::chrono::milliseconds notice_for{1200};
    std::chrono::milliseconds notice_every{50};
  };
  /// The voter that the last change made.
  struct FreshVoter {
    MemberId id{};
    Index index{};  ///< Index of the configuration that made it a voter.
  };
  struct Notice {
    MemberId to{};
    Index removed_at{};  ///< Index of the configuration that removed it.
  };

  explicit Membership(const Options& options) : options_(options) {}

  /// The configuration at `index` of the log is in effect, committed or not.
  void set_newest(const std::vector<Member>& members, Index index, Time now);
  /// The configuration at `index` is committed. True: it removed this member.
  [[nodiscard]] bool set_committed(const std::vector<Member>& members, Index index, Time now);

  [[nodiscard]] const std::vector<Member>& newest() const noexcept { return newest_; }
  /// In the newest configuration; null: not a member.
  [[nodiscard]] const Member* find(MemberId id) const;
  [[nodiscard]] bool is_voter(MemberId id) const;
  [[nodiscard]] std::size_t voters() const;
  /// Whether this member is the only one.
  [[nodiscard]] bool is_alone() const;
  [[nodiscard]] const std::optional<FreshVoter>& fresh_voter() const noexcept {
    return fresh_voter_;
  }

  /// Peers of the network, removed members with pending notices included, if the list has changed
  /// since the last call.
  [[nodiscard]] std::optional<std::vector<Member>> changed_peers();

  /// A message of `sender` arrived. Ignored if it is not a member.
  void heard(MemberId sender, Time now);
  /// All members count as heard now: a new leader waits for their first answers.
  void hear_all(Time now);
  /// Time since the last contact; zero: there was none yet.
  [[nodiscard]] Time::duration silence(MemberId member, Time now) const;
  [[nodiscard]] bool was_heard_within(std::chrono::milliseconds time, MemberId member,
                                      Time now) const;

  /// Notices that are due at this time. Forgets removed members whose time is over.
  [[nodiscard]] std::vector<Notice> take_due_notices(Time now);
  /// Whether the sender of a vote request gets a removal notice: a configuration is committed, and
  /// neither the committed nor the newest one contains the sender.
  [[nodiscard]] bool is_removed_peer(MemberId sender) const;
  [[nodiscard]] std::optional<Time> deadline() const;

  /// Processes a removal notice for the configuration at `index`. True: it is new. An outdated
  /// notice is ignored: its sender may not know that this member was added again.
  [[nodiscard]] bool receive_notice(Index index);
  /// Whether the group continued without this member.
  [[nodiscard]] bool is_removed() const;

 private:
  struct Leaving {
    Member member;
    Index removed_at{};
    Time until;
    Time notice_at;  ///< Time of the next notice.
  };

  const Options options_;
  std::vector<Member> newest_;
  Index newest_index_{};
  std::vector<Member> committed_;
  std::vector<Member> peers_;  ///< Peers as changed_peers() returned them last.
  std::map<MemberId, Time> heard_;
  std::optional<FreshVoter> fresh_voter_;
  std::vector<Leaving> leaving_;
  Index noticed_at_{};  ///< Index of the newest received notice.
  bool was_member_ = false;
};

}  // namespace tenure::server::raft
