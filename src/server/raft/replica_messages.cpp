#include <algorithm>
#include <utility>
#include <variant>

#include "server/raft/replica.hpp"
#include "server/raft/shim_views.hpp"

namespace tenure::server::raft {
namespace {

// Of the payloads in one message, if it has more than one.
constexpr std::size_t append_bytes_max = std::size_t{1} << 20;

// One overload for each kind of message but AppendEntries: the flat form without what varies in
// size.
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
  // The library does not know these, and refuses what has no type.
  [[nodiscard]] shim_message operator()(const Probe& message) const {
    return begin({}, message.term);
  }
  [[nodiscard]] shim_message operator()(const ProbeResult& message) const {
    return begin({}, message.term);
  }
  [[nodiscard]] shim_message operator()(const Dismissal& /*message*/) const {
    return begin({}, {});
  }
};

}  // namespace

void Replica::receive(MemberId sender, const Message& message) {
  if (const auto* append = std::get_if<AppendEntries>(&message)) {
    receive_append(sender, *append);
    return;
  }
  const auto* result = std::get_if<AppendResult>(&message);
  if (result != nullptr && is_stale(sender, *result)) {
    return;
  }
  const Snapshot* snapshot = nullptr;
  if (const auto* install = std::get_if<InstallSnapshot>(&message)) {
    // R6: one at a time; the leader will send it again if it is still wanted.
    // R11: to one of an earlier term the library answers "done, up to" a number that it never set.
    // Whoever sent it and leads again by now takes that for all that he has.
    if (shim_is_installing(core_.get()) || install->term < term()) {
      return;
    }
    snapshot = &install->snapshot;
  }
  give(std::visit(Flat{sender}, message), {}, snapshot);
  tell_successor();
}

// R4: a rejection that was on its way for long would move the leader's idea of what the follower
// has below what it is known to have.
bool Replica::is_stale(MemberId sender, const AppendResult& message) const {
  std::uint64_t match = 0;
  return message.rejected != Index{} && message.term == term() &&
         shim_match(core_.get(), sender.get(), &match) &&
         (message.rejected.get() <= match || message.last.get() < match);
}

void Replica::receive_append(MemberId sender, const AppendEntries& message) {
  // R11: likewise, since a refusal of index 0 means success.
  if (message.term < term() && message.previous == Index{}) {
    return;
  }
  AppendEntries begin{.term = message.term,
                      .previous = message.previous,
                      .previous_term = message.previous_term,
                      .commit = message.commit};
  std::span<const Entry> entries = message.entries;
  // R5: what our snapshot stands for already would be appended in the wrong place.
  if (message.term >= term() && message.previous < snapshot_.index &&
      !shim_is_installing(core_.get())) {
    const auto known = snapshot_.index.get() - message.previous.get();
    entries = entries.subspan(std::min<std::size_t>(entries.size(), known));
    begin.previous = snapshot_.index;
    begin.previous_term = snapshot_.term;
  }
  // R1: the library remembers the index of the first entry where it means that of the change.
  std::size_t first = 0;
  do {
    std::size_t end = std::min(first + 1, entries.size());
    while (end < entries.size() && entries[end].type != EntryType::change) {
      ++end;
    }
    give_append(sender, begin, entries.subspan(first, end - first));
    if (end > 0) {
      begin.previous = next(begin.previous, end - first);
      begin.previous_term = entries[end - 1].term;
    }
    first = end;
  } while (first < entries.size() && term() <= message.term);
}

void Replica::give_append(MemberId sender, const AppendEntries& message,
                          std::span<const Entry> entries) {
  const auto views = views_of(entries);
  auto flat = Flat{sender}(message);
  flat.entries = views.data();
  flat.entry_count = static_cast<unsigned>(views.size());
  give(flat, entries, nullptr);
}

void Replica::give(const shim_message& flat, std::span<const Entry> entries,
                   const Snapshot* snapshot) {
  // What a peer sends must not end us: a message that the library refuses is dropped.
  auto event = event_of(shim_receive);
  event.message = &flat;
  static_cast<void>(step(event, entries, snapshot));
}

// The library counts entries and does not know how large they are: more than fits into a message of
// reasonable size becomes several, each of which is answered.
void Replica::send_entries(const shim_message& flat) {
  const MemberId peer{flat.peer};
  AppendEntries message{.term = Term{flat.term},
                        .previous = Index{flat.previous_index},
                        .previous_term = Term{flat.previous_term},
                        .commit = Index{flat.commit}};
  const Index last = next(message.previous, flat.entry_count);
  if (flat.entry_count > 0 && (next(message.previous) < log_.first() || last > log_.last())) {
    effects_.fatal("entries that a peer needs are not in the log");
    return;
  }
  std::size_t bytes = 0;
  for (Index index = next(message.previous); index <= last; index = next(index)) {
    const Entry& entry = *log_.find(index);
    if (!message.entries.empty() && bytes + entry.payload->size() > append_bytes_max) {
      const AppendEntries rest{.term = message.term,
                               .previous = Index{index.get() - 1},
                               .previous_term = message.entries.back().term,
                               .commit = message.commit};
      effects_.send(peer, std::exchange(message, rest));
      bytes = 0;
    }
    bytes += entry.payload->size();
    message.entries.push_back(entry);
  }
  effects_.send(peer, std::move(message));
}

// R11: with what it refuses because of its term the library says a number that it never set.
AppendResult Replica::result_of(const shim_message& flat) const {
  auto last = Index{flat.last_index};
  if (flat.rejected > 0) {
    last = std::min({last, Index{flat.rejected - 1}, log_.last()});
  }
  return {.term = Term{flat.term}, .rejected = Index{flat.rejected}, .last = last};
}

void Replica::send(const shim_message& flat) {
  const MemberId peer{flat.peer};
  const Term term{flat.term};
  switch (flat.type) {
    case shim_append_entries: send_entries(flat); return;
    case shim_append_result: effects_.send(peer, result_of(flat)); return;
    case shim_request_vote:
      effects_.send(peer, RequestVote{.term = term,
                                      .candidate = MemberId{flat.candidate},
                                      .last = Index{flat.last_index},
                                      .last_term = Term{flat.last_term},
                                      .disrupts_leader = flat.disrupts_leader,
                                      .is_pre_vote = flat.is_pre_vote});
      return;
    case shim_vote_result: {
      // R3: a refused pre-vote must tell our term, or the candidate never learns why.
      const bool hides_term = flat.is_pre_vote && !flat.is_granted;
      effects_.send(peer, VoteResult{.term = hides_term ? std::max(term, this->term()) : term,
                                     .is_granted = flat.is_granted,
                                     .is_pre_vote = flat.is_pre_vote});
      return;
    }
    case shim_install_snapshot: effects_.send_snapshot(peer, term); return;
    case shim_timeout_now:
      take_over_ = {
          .to = peer,
          .message = {
              .term = term, .last = Index{flat.last_index}, .last_term = Term{flat.last_term}}};
      tell_successor();
      return;
  }
}

// R10: the library tells its successor to take over when the last entries are on their way. But one
// that still writes them does not heed it, and is not told again: nobody could write for an
// election timeout, and then the leadership would be where it was.
void Replica::tell_successor() {
  if (!take_over_.has_value()) {
    return;
  }
  if (shim_transferee(core_.get()) != take_over_->to.get()) {
    take_over_.reset();
  } else if (match(take_over_->to) >= take_over_->message.last) {
    const auto [to, message] = *std::exchange(take_over_, std::nullopt);
    effects_.send(to, message);
  }
}

}  // namespace tenure::server::raft
