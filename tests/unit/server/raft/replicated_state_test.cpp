#include "server/raft/replicated_state.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "server/raft/listeners.hpp"

namespace tenure::server::raft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Records the order of calls.
class Log final : public Listener {
 public:
  void applied(const core::Applied& /*what*/, const core::State& /*state*/) override {
    calls.emplace_back("applied");
  }
  void settled() override { calls.emplace_back("settled"); }
  void committed(std::chrono::nanoseconds took, std::size_t commands) override {
    calls.emplace_back("committed " + std::to_string(commands) + " in " +
                       std::to_string(took / milliseconds(1)));
  }
  void restored(const core::State& /*state*/) override { calls.emplace_back("restored"); }

  std::vector<std::string> calls;
};

class RaftReplicatedState : public ::testing::Test {
 protected:
  RaftReplicatedState() { listeners.add(log); }

  core::Batch batch(milliseconds ttl) {
    core::Batch made;
    made.version = state.version();
    made.stamp.time = state.time_at(now);
    made.commands.emplace_back(core::GrantLease{.id = core::LeaseId{1}, .ttl = ttl});
    return made;
  }

  Time now{seconds(1000)};
  Log log;
  Listeners listeners;
  ReplicatedState state{core::StateMachine(), listeners};
};

TEST_F(RaftReplicatedState, a_proposer_is_notified_before_the_listeners) {
  state.begin_clock(now);
  ProposedEntry entry{.term = Term{3}, .batch = batch(seconds(5)), .proposals = 1, .proposed = now};
  entry.decisions.emplace_back([this](const Result<Decided>& decided) {
    log.calls.push_back("decided in term " + std::to_string(decided.value().term));
  });

  state.apply(std::move(entry), now + milliseconds(7));

  EXPECT_EQ(log.calls, (std::vector<std::string>{"decided in term 3", "applied", "settled",
                                                 "committed 1 in 7"}));
}

TEST_F(RaftReplicatedState, an_entry_of_another_leader_gives_the_same_state) {
  state.begin_clock(now);
  const auto bytes = core::encode(batch(seconds(5)));

  ASSERT_TRUE(state.apply(Entry{.payload = std::make_shared<const std::string>(bytes)}));

  EXPECT_EQ(state.get().leases.all().size(), 1U);
  EXPECT_EQ(log.calls, (std::vector<std::string>{"applied", "settled"}));
}

TEST_F(RaftReplicatedState, a_barrier_changes_nothing_and_an_unreadable_entry_is_an_error) {
  const auto nonsense = std::make_shared<const std::string>("?");

  EXPECT_TRUE(state.apply(Entry{.type = EntryType::barrier, .payload = nonsense}).has_value());
  EXPECT_FALSE(state.apply(Entry{.payload = nonsense}).has_value());
  EXPECT_TRUE(log.calls.empty());
}

TEST_F(RaftReplicatedState, a_lease_expires_in_cluster_time) {
  state.begin_clock(now);
  EXPECT_EQ(state.next_expiry(), std::nullopt);
  ProposedEntry entry{.batch = batch(seconds(5)), .proposals = 1, .proposed = now};
  entry.decisions.emplace_back();
  state.apply(std::move(entry), now);

  EXPECT_EQ(state.next_expiry(), now + seconds(5));
  EXPECT_FALSE(state.is_expiry_due(now + seconds(5) - milliseconds(1)));
  EXPECT_TRUE(state.is_expiry_due(now + seconds(5)));
}

TEST_F(RaftReplicatedState, listeners_are_notified_of_a_replaced_state) {
  state.replace([](core::StateMachine before) { return before; });

  EXPECT_EQ(log.calls, std::vector<std::string>{"restored"});
}

}  // namespace
}  // namespace tenure::server::raft
