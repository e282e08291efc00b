#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "server/raft/entry.hpp"

namespace tenure::server::raft {

// What members say to each other: Ongaro and Ousterhout, "In Search of an Understandable Consensus
// Algorithm" (2014), figure 2 and section 7; Ongaro's thesis for pre-votes (9.6) and transfer
// (3.10).

struct AppendEntries {
  Term term{};
  Index previous{};
  Term previous_term{};
  Index commit{};
  std::vector<Entry> entries{};
};

struct AppendResult {
  Term term{};
  Index rejected{};  ///< 0: nothing was.
  Index last{};      ///< Of the log that answers.
};

struct RequestVote {
  Term term{};
  MemberId candidate{};
  Index last{};
  Term last_term{};
  bool disrupts_leader = false;  ///< The leader itself asked for the election.
  bool is_pre_vote = false;
};

struct VoteResult {
  Term term{};
  bool is_granted = false;
  bool is_pre_vote = false;
};

struct InstallSnapshot {
  Term term{};
  Snapshot snapshot{};
};

struct TimeoutNow {
  Term term{};
  Index last{};
  Term last_term{};
};

using Message =
    std::variant<AppendEntries, AppendResult, RequestVote, VoteResult, InstallSnapshot, TimeoutNow>;

}  // namespace tenure::server::raft
