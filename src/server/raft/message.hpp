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

/// A leader's question before it answers reads: is this term still the newest that you know? The
/// library knows nothing of it. Thesis, 6.4.
struct Probe {
  Term term{};
  std::uint64_t round{};  ///< Grows; an answer to one is an answer to all before it.
};

/// Only from a member that knows of no newer term.
struct ProbeResult {
  Term term{};  ///< Of the probe.
  std::uint64_t round{};
};

/// To a member that was removed, from one that knows it: the last entry of the group that concerns
/// it. Thesis, 4.2.2: nobody else would tell it, since it gets no entries any more.
struct RemovalNotice {
  Index index{};  ///< Of the committed change that left it out.
};

/// The order is that of the numbers on the wire: new ones go to the end.
using Message = std::variant<AppendEntries, AppendResult, RequestVote, VoteResult, InstallSnapshot,
                             TimeoutNow, Probe, ProbeResult, RemovalNotice>;

}  // namespace tenure::server::raft
