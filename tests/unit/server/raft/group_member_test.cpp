#include "server/raft/group_member.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/raft/event_line.hpp"
#include "support/raft/voters.hpp"

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;
using test::three;

/// Records the messages and actions of the member.
class Records final : public Environment {
 public:
  void save_vote(Term /*term*/, MemberId /*voted_for*/) override { effects.emplace_back("vote"); }
  void append(Index /*first*/, const std::vector<Entry>& /*entries*/) override {
    effects.emplace_back("append");
  }
  void install(const Snapshot& /*snapshot*/) override { effects.emplace_back("install"); }
  core::StateMachine restore(const Snapshot& /*snapshot*/, core::StateMachine before) override {
    return before;
  }
  void cut(Index /*last*/) override {}
  void compact(CompactionPlan /*plan*/) override {}
  [[nodiscard]] DiskState disk() const override { return {}; }
  void send(MemberId peer, Message message) override {
    effects.emplace_back("send");
    sent.emplace_back(peer, std::move(message));
  }
  void send_snapshot(MemberId /*peer*/, Term /*term*/) override {}
  [[nodiscard]] std::optional<Versions> versions_of(MemberId peer) const override {
    const auto found = versions.find(peer);
    return found == versions.end() ? newest_versions() : found->second;
  }
  void set_members(const std::vector<Member>& members) override { peers = members; }
  [[nodiscard]] Time local_time() override { return {}; }
  void drain_soon() override {}
  void report(log::Level /*level*/, std::string_view event, log::Fields fields) override {
    reports.push_back(test::line_of(event, fields));
  }
  void fatal(const std::string& why) override { ADD_FAILURE() << why; }

  /// Messages of this kind to the peer.
  template <class Kind>
  [[nodiscard]] std::vector<Kind> sent_to(std::uint64_t peer) const {
    std::vector<Kind> found;
    for (const auto& [to, message] : sent) {
      if (const auto* one = std::get_if<Kind>(&message); one != nullptr && to == MemberId{peer}) {
        found.push_back(*one);
      }
    }
    return found;
  }

  std::vector<std::string> effects;
  std::vector<std::pair<MemberId, Message>> sent;
  std::vector<std::string> reports;
  std::vector<Member> peers;
  std::map<MemberId, Versions> versions;
};

class RaftGroupMember : public ::testing::Test {
 protected:
  RaftGroupMember() {
    member.set_time(now);
    member.set_cluster_version(core::version_2);
    member.start(
        {.term = Term{1},
         .entries = {{.term = Term{1},
                      .type = EntryType::change,
                      .payload = std::make_shared<const std::string>(encode_members(three))}}});
    carry_out();
  }

  void carry_out() {
    while (auto action = member.next_action()) {
      actions.push_back(*std::move(action));
    }
  }
  void receive(std::uint64_t sender, const Message& message) {
    member.receive(MemberId{sender}, message);
    carry_out();
  }
  /// Wins an election with the vote of member 2.
  void lead() {
    now = member.deadline().value();
    member.set_time(now);
    member.timeout();
    carry_out();
    receive(2, VoteResult{.term = Term{2}, .is_granted = true, .is_pre_vote = true});
    receive(2, VoteResult{.term = Term{2}, .is_granted = true});
    ASSERT_TRUE(member.leads());
  }

  Time now{std::chrono::seconds(1000)};
  Records environment;
  GroupMember member{{.id = MemberId{1}}, environment};
  std::vector<GroupMember::StateAction> actions;
};

TEST_F(RaftGroupMember, the_configuration_reaches_the_network_and_not_the_owner) {
  EXPECT_EQ(environment.peers.size(), 3U);
  EXPECT_TRUE(actions.empty());
}

// After a crash, a vote that is not durable could be granted twice.
TEST_F(RaftGroupMember, a_vote_is_saved_before_it_is_sent) {
  receive(2,
          RequestVote{
              .term = Term{5}, .candidate = MemberId{2}, .last = Index{1}, .last_term = Term{1}});

  ASSERT_EQ(environment.sent_to<VoteResult>(2).size(), 1U);
  EXPECT_TRUE(environment.sent_to<VoteResult>(2)[0].is_granted);
  EXPECT_EQ(environment.effects.front(), "vote");
  EXPECT_EQ(environment.effects.back(), "send");
}

TEST_F(RaftGroupMember, a_change_of_the_role_is_an_action_for_the_owner) {
  lead();

  ASSERT_EQ(actions.size(), 2U) << "candidate, leader";
  const auto* role = std::get_if<ChangeRole>(&actions.back());
  ASSERT_NE(role, nullptr);
  EXPECT_EQ(role->role, Role::leader);
  EXPECT_EQ(role->last, member.replica().log().last());
}

// Such a peer would stop, or apply a different change.
TEST_F(RaftGroupMember, a_peer_that_cannot_read_entries_gets_none_and_is_reported_once) {
  environment.versions[MemberId{3}] = {.newest = core::version_1, .wanted = core::version_1};
  lead();
  receive(2, AppendResult{.term = Term{2}, .last = Index{1}});
  receive(3, AppendResult{.term = Term{2}, .last = Index{1}});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(member.submit(std::make_shared<const std::string>("command")).has_value());
    carry_out();
  }

  const auto has_entries = [](const AppendEntries& message) { return !message.entries.empty(); };
  EXPECT_TRUE(std::ranges::any_of(environment.sent_to<AppendEntries>(2), has_entries));
  EXPECT_TRUE(std::ranges::none_of(environment.sent_to<AppendEntries>(3), has_entries));
  EXPECT_EQ(environment.reports.size(), 1U);
}

// Only a member that knows no newer term has not voted in one.
TEST_F(RaftGroupMember, a_round_of_reads_is_acknowledged_unless_a_newer_term_is_known) {
  receive(2,
          RequestVote{
              .term = Term{5}, .candidate = MemberId{2}, .last = Index{1}, .last_term = Term{1}});

  receive(3, Probe{.term = Term{4}, .round = 1});
  EXPECT_TRUE(environment.sent_to<ProbeResult>(3).empty());
  receive(3, Probe{.term = Term{5}, .round = 2});

  EXPECT_EQ(environment.sent_to<ProbeResult>(3).size(), 1U);
}

TEST_F(RaftGroupMember, a_member_that_stops_does_not_stand_for_election) {
  EXPECT_TRUE(member.deadline().has_value());

  member.stop_elections();

  EXPECT_EQ(member.deadline(), std::nullopt);
}

TEST_F(RaftGroupMember, a_removed_peer_that_requests_votes_gets_a_notice) {
  const RequestVote request{.term = Term{5}, .candidate = MemberId{4}};

  member.answer_removed_peer(MemberId{4}, request);
  member.answer_removed_peer(MemberId{3}, request);

  EXPECT_EQ(environment.sent_to<RemovalNotice>(4).size(), 1U);
  EXPECT_TRUE(environment.sent_to<RemovalNotice>(3).empty());
}

// A joining member does not have the member list yet.
TEST_F(RaftGroupMember, a_joining_member_sends_no_removal_notices) {
  GroupMember joining{{.id = MemberId{5}}, environment};
  joining.start({});

  joining.answer_removed_peer(MemberId{4}, RequestVote{.candidate = MemberId{4}});

  EXPECT_TRUE(environment.sent_to<RemovalNotice>(4).empty());
}

}  // namespace
}  // namespace tenure::server::raft
