#include "server/raft/replicated_state.hpp"

#include <utility>

#include "core/batch.hpp"

namespace tenure::server::raft {

void ReplicatedState::apply(ProposedEntry entry, Time now) {
  machine_.apply(entry.batch, [&](std::size_t i, const core::Applied& applied) {
    if (entry.decisions[i]) {
      entry.decisions[i](Decided{
          .outcome = applied.outcome, .revision = applied.revision, .term = entry.term.get()});
    }
    listener_.applied(applied, machine_.state());
  });
  listener_.settled();
  listener_.committed(now - entry.proposed, entry.batch.commands.size());
}

Result<void> ReplicatedState::apply(const Entry& entry) {
  if (entry.type != EntryType::command) {
    return {};
  }
  const auto batch = core::decode_batch(*entry.payload);
  if (!batch) {
    return fail(Errc::invalid_argument,
                "an entry of the log cannot be read: " + batch.error().detail);
  }
  machine_.apply(*batch, [&](std::size_t, const core::Applied& applied) {
    listener_.applied(applied, machine_.state());
  });
  listener_.settled();
  return {};
}

void ReplicatedState::replace(
    const std::function<core::StateMachine(core::StateMachine)>& restore) {
  machine_ = restore(std::move(machine_));
  listener_.restored(machine_.state());
}

std::optional<Time> ReplicatedState::next_expiry() const {
  const auto deadline = machine_.next_deadline();
  return deadline.has_value() ? std::optional(clock_.local(*deadline)) : std::nullopt;
}

bool ReplicatedState::is_expiry_due(Time now) {
  const auto deadline = machine_.next_deadline();
  return deadline.has_value() && *deadline <= clock_.at(now);
}

}  // namespace tenure::server::raft
