#pragma once

#include <string>
#include <variant>

#include "server/raft/message.hpp"

namespace tenure::simulation {

/// Formatter of messages between members for traces.
struct MessageFormatter {
  static std::string number(auto id) { return std::to_string(id.get()); }

  std::string operator()(const server::raft::AppendEntries& message) const {
    return "append in term " + number(message.term) + " behind " + number(message.previous) + " (" +
           number(message.previous_term) + "): " + std::to_string(message.entries.size()) +
           " entries, commit " + number(message.commit);
  }
  std::string operator()(const server::raft::AppendResult& message) const {
    return "append result in term " + number(message.term) + ": last " + number(message.last) +
           (message.rejected.get() == 0 ? "" : ", rejects " + number(message.rejected));
  }
  std::string operator()(const server::raft::RequestVote& message) const {
    return std::string(message.is_pre_vote ? "pre-vote" : "vote") + " wanted in term " +
           number(message.term) + ", last " + number(message.last) + " (" +
           number(message.last_term) + ")" + (message.disrupts_leader ? ", by the leader" : "");
  }
  std::string operator()(const server::raft::VoteResult& message) const {
    return std::string(message.is_pre_vote ? "pre-vote" : "vote") +
           (message.is_granted ? " granted" : " refused") + " in term " + number(message.term);
  }
  std::string operator()(const server::raft::InstallSnapshot& message) const {
    return "snapshot " + number(message.snapshot.mark.index) + " in term " + number(message.term);
  }
  std::string operator()(const server::raft::TimeoutNow& message) const {
    return "take over in term " + number(message.term) + ", last " + number(message.last);
  }
  std::string operator()(const server::raft::Probe& message) const {
    return "probe " + std::to_string(message.round) + " in term " + number(message.term);
  }
  std::string operator()(const server::raft::ProbeResult& message) const {
    return "probe result " + std::to_string(message.round) + " in term " + number(message.term);
  }
  std::string operator()(const server::raft::RemovalNotice& message) const {
    return "removal notice of " + number(message.index);
  }
};

[[nodiscard]] inline std::string describe(const server::raft::Message& message) {
  return std::visit(MessageFormatter{}, message);
}

}  // namespace tenure::simulation
