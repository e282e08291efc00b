#include "server/raft/shim_views.hpp"

#include <variant>

namespace tenure::server::raft {
namespace {

/// Visitor: converts a message to the flat form of the shim. AppendEntries stays without entries.
struct Flat {
  MemberId sender;

  [[nodiscard]] shim_message begin(shim_message_type type, Term term) const {
    shim_message flat{};
    flat.type = type;
    flat.peer = sender.get();
    flat.term = term.get();
    return flat;
  }
  [[nodiscard]] shim_message operator()(const AppendEntries& message) const {
    auto flat = begin(shim_append_entries, message.term);
    flat.previous_index = message.previous.get();
    flat.previous_term = message.previous_term.get();
    flat.commit = message.commit.get();
    return flat;
  }
  [[nodiscard]] shim_message operator()(const AppendResult& message) const {
    auto flat = begin(shim_append_result, message.term);
    flat.rejected = message.rejected.get();
    flat.last_index = message.last.get();
    return flat;
  }
  [[nodiscard]] shim_message operator()(const RequestVote& message) const {
    auto flat = begin(shim_request_vote, message.term);
    flat.candidate = message.candidate.get();
    flat.last_index = message.last.get();
    flat.last_term = message.last_term.get();
    flat.disrupts_leader = message.disrupts_leader;
    flat.is_pre_vote = message.is_pre_vote;
    return flat;
  }
  [[nodiscard]] shim_message operator()(const VoteResult& message) const {
    auto flat = begin(shim_vote_result, message.term);
    flat.is_granted = message.is_granted;
    flat.is_pre_vote = message.is_pre_vote;
    return flat;
  }
  [[nodiscard]] shim_message operator()(const InstallSnapshot& message) const {
    auto flat = begin(shim_install_snapshot, message.term);
    flat.snapshot = view_of(message.snapshot.mark);
    flat.body = view_of(*message.snapshot.body);
    return flat;
  }
  [[nodiscard]] shim_message operator()(const TimeoutNow& message) const {
    auto flat = begin(shim_timeout_now, message.term);
    flat.last_index = message.last.get();
    flat.last_term = message.last_term.get();
    return flat;
  }
  // libraft does not know these types and refuses a message without a type.
  [[nodiscard]] shim_message operator()(const Probe& message) const {
    return begin({}, message.term);
  }
  [[nodiscard]] shim_message operator()(const ProbeResult& message) const {
    return begin({}, message.term);
  }
  [[nodiscard]] shim_message operator()(const RemovalNotice& /*message*/) const {
    return begin({}, {});
  }
};

}  // namespace

shim_message view_of(MemberId sender, const AppendEntries& message) {
  return Flat{sender}(message);
}

shim_message view_of(MemberId sender, const Message& message) {
  return std::visit(Flat{sender}, message);
}

}  // namespace tenure::server::raft
