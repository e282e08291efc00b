#include <utility>

#include "server/raft/replica.hpp"
#include "server/raft/shim_views.hpp"

namespace tenure::server::raft {

// INVARIANT: this order. A vote that was not durable could be given twice; a message may speak of
// entries that the log in memory must have; and whoever is told of a role or of an applied entry
// finds everything else in place. `update` dies with the next step, so apply_committed(), which may
// take one, comes last.
void Replica::process(const shim_update& update, std::span<const Entry> given,
                      const Snapshot* received) {
  if ((update.flags & (shim_has_term | shim_has_vote)) != 0) {
    effects_.save_vote(term(), MemberId{shim_voted_for(core_.get())});
  }
  if ((update.flags & shim_has_entries) != 0) {
    append(update, given);
  }
  if ((update.flags & shim_has_snapshot) != 0) {
    install(update, *received);
  }
  // Before the messages: they may be for members that are new.
  notice_members();
  for (unsigned i = 0; i < update.message_count; ++i) {
    send(update.messages[i]);
  }
  if ((update.flags & shim_has_state) != 0 && role() != role_) {
    role_ = role();
    effects_.role_changed(role_);
  }
  if ((update.flags & shim_has_commit) != 0) {
    apply_committed();
  }
}

void Replica::notice_members() {
  const auto flat = shim_mark_configuration(core_.get());
  const ConfigurationMark mark{
      .place = flat.place, .committed = flat.committed, .uncommitted = flat.uncommitted};
  if (mark == configuration_mark_) {
    return;
  }
  configuration_mark_ = mark;
  std::vector<shim_member> members(shim_configuration_members(core_.get(), nullptr, 0));
  shim_configuration_members(core_.get(), members.data(), members.size());
  std::vector<Member> out;
  out.reserve(members.size());
  for (const auto& member : members) {
    out.push_back(member_of(member));
  }
  effects_.members_changed(out);
}

void Replica::append(const shim_update& update, std::span<const Entry> given) {
  const Index first{update.entries_index};
  std::vector<Entry> entries;
  entries.reserve(update.entry_count);
  for (const auto& view : std::span(update.entries, update.entry_count)) {
    // The library hands back the bytes that it was given, perhaps without the first ones; only the
    // no-op of a new leader is its own.
    while (!given.empty() && given.front().payload->data() != view.payload.start) {
      given = given.subspan(1);
    }
    entries.push_back({.term = Term{view.term},
                       .type = static_cast<EntryType>(view.type),
                       .payload = !given.empty() ? given.front().payload
                                                 : std::make_shared<const std::string>(
                                                       static_cast<const char*>(view.payload.start),
                                                       view.payload.size)});
  }
  log_.replace_from(first, entries);
  // What is on its way to the disk and now replaced must not be reported as durable.
  for (auto& operation : operations_) {
    if (!operation.install.has_value() && operation.last >= first) {
      operation.is_void |= operation.first >= first;
      operation.last = Index{first.get() - 1};
    }
  }
  operations_.push_back({.first = first, .last = next(first, entries.size() - 1)});
  effects_.append(first, entries);
}

void Replica::install(const shim_update& update, const Snapshot& received) {
  const auto* configuration = static_cast<const char*>(update.snapshot.configuration.start);
  const Snapshot snapshot{
      .mark = {.index = Index{update.snapshot.index},
               .term = Term{update.snapshot.term},
               .configuration_index = Index{update.snapshot.configuration_index},
               .configuration = {configuration, update.snapshot.configuration.size}},
      .body = received.body};
  log_.restart_at(next(snapshot.mark.index));
  for (auto& operation : operations_) {
    operation.is_void = true;
  }
  taken_.reset();  // R7
  operations_.push_back({.install = snapshot});
  effects_.install(snapshot);
}

void Replica::apply_committed() {
  while (!shim_is_installing(core_.get()) && applied_ < commit()) {
    const Index index = next(applied_);
    const auto* found = log_.find(index);
    if (found == nullptr) {
      if (index < log_.first()) {
        effects_.fatal("an entry that is to be applied is no longer in the log");
      }
      return;
    }
    const Entry entry = *found;  // A change takes a step, and that may move the log.
    applied_ = index;
    if (entry.type == EntryType::change) {
      apply_change(index, entry);
    } else {
      effects_.apply(index, entry);
    }
  }
}

void Replica::apply_change(Index index, const Entry& entry) {
  configuration_ = *entry.payload;
  configuration_index_ = index;
  effects_.apply(index, entry);
  auto event = event_of(shim_configuration);
  event.index = index.get();
  event.configuration = view_of(configuration_);
  must_step(event, "configuration");
}

}  // namespace tenure::server::raft
