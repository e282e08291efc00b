#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "server/raft/entry.hpp"

namespace tenure::server::raft {

// Messages of the Raft protocol: Ongaro and Ousterhout, "In Search of an Understandable Consensus
// Algorithm" (2014), figure 2 and section 7; Ongaro's thesis for pre-votes (9.6) and leadership
// transfer (3.10). Plain values; entries are shared, not copied.

struct AppendEntries {
  Term term{};
  Index previous{};
  Term previous_term{};
  Index commit{};
  std::vector<Entry> entries{};
};

struct AppendResult {
  Term term{};
  Index rejected{};  ///< Rejected index; 0: accepted.
  Index last{};      ///< Last index of the log of the sender.
};

struct RequestVote {
  Term term{};
  MemberId candidate{};
  Index last{};
  Term last_term{};
  bool disrupts_leader = false;  ///< Whether the election is a leadership transfer.
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

/// Read index round (thesis, 6.4): the leader asks whether its term is still the newest known one
/// before it answers reads. Not a message of libraft.
struct Probe {
  Term term{};
  std::uint64_t round{};  ///< Increasing number; an acknowledgement covers all earlier rounds.
};

/// Acknowledgement of a Probe, sent only by a member that knows no newer term.
struct ProbeResult {
  Term term{};  ///< Term of the probe.
  std::uint64_t round{};
};

/// Removal notice to a removed member. It gets no entries of the group any more, so it could not
/// learn of its removal otherwise (thesis, 4.2.2).
struct RemovalNotice {
  Index index{};  ///< Index of the committed configuration without it.
};

/// Order of the alternatives: new ones are appended.
using Message = std::variant<AppendEntries, AppendResult, RequestVote, VoteResult, InstallSnapshot,
                             TimeoutNow, Probe, ProbeResult, RemovalNotice>;

}  // namespace tenure::server::raft
