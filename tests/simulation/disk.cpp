#include "simulation/disk.hpp"

#include <algorithm>
#include <utility>

#include "core/snapshot.hpp"

namespace tenure::simulation {

using namespace server::raft;

namespace {

constexpr ClusterId cluster{7};
constexpr std::size_t sector_bytes = 512;

Index last_of(const Recovered& recovered) {
  return Index{recovered.first.get() + recovered.entries.size() - 1};
}

}  // namespace

void Disk::bootstrap(const Entry& first) {
  save_vote(Term{1}, MemberId{});
  begin_segment(0);
  const auto write = encode({Append{.first = Index{1}, .entries = {first}}});
  segments_[write.segment].bytes.replace(write.offset, write.bytes.size(), write.bytes);
}

void Disk::save_vote(Term term, MemberId voted_for) {
  former_vote_ = {.number = votes_, .vote = vote_};
  vote_ = {.term = term, .voted_for = voted_for};
  write_votes({.number = ++votes_, .vote = vote_}, vote_slot_count);
}

void Disk::write_votes(const VoteSlot& slot, std::size_t slots) {
  const auto bytes = encode_vote_slot(slot);
  // The planted defect: the slots are written in turn.
  if (world_.options().mutant == Mutant::vote_one_copy) {
    vote_slots_[slot.number % vote_slot_count] = bytes;
    return;
  }
  std::fill_n(vote_slots_.begin(), slots, bytes);
}

VirtualTime Disk::delay() {
  auto& random = world_.random();
  return random.between(delay_ / 4, random.one_in(20) ? delay_ * 4 : delay_);
}

void Disk::append(Index first, const std::vector<Entry>& entries) {
  push(Append{.first = first, .entries = entries});
}

void Disk::install(const Snapshot& snapshot) {
  push(snapshot);
}

void Disk::cut(Index last) {
  push(Cut{.last = last});
}

void Disk::push(Operation operation) {
  queue_.push_back(std::move(operation));
  if (std::holds_alternative<std::monostate>(under_way_)) {
    begin();
  }
}

// Group commit: all queued appends share one sync; the next group is written after it.
void Disk::begin() {
  while (!queue_.empty() && std::holds_alternative<Cut>(queue_.front())) {
    cut_now(std::get<Cut>(queue_.front()).last);
    queue_.pop_front();
  }
  if (queue_.empty()) {
    return;
  }
  std::size_t operations = 0;
  if (auto* snapshot = std::get_if<Snapshot>(&queue_.front())) {
    under_way_ = std::move(*snapshot);
    queue_.pop_front();
    operations = 1;
  } else {
    std::vector<Append> appends;
    while (!queue_.empty() && std::holds_alternative<Append>(queue_.front())) {
      appends.push_back(std::move(std::get<Append>(queue_.front())));
      queue_.pop_front();
    }
    operations = appends.size();
    under_way_ = encode(appends);
  }
  const bool lies = world_.options().mutant == Mutant::ack_before_durable;
  if (lies) {
    world_.after(VirtualTime(1), [this, operations, life = life_] {
      if (life == life_) {
        done_(operations);
      }
    });
  }
  const auto slow = lies ? delay() * 20 : delay();
  world_.after(slow, [this, operations, lies, life = life_] {
    if (life != life_) {
      return;
    }
    if (const auto* write = std::get_if<Write>(&under_way_)) {
      segments_[write->segment].bytes.replace(write->offset, write->bytes.size(), write->bytes);
      durable_ = {.segment = write->segment, .offset = write->offset + write->bytes.size()};
      durable_synced_ = decay_.one_in(4) ? durable_ : durable_synced_;
    } else {
      install_now(std::get<Snapshot>(under_way_));
    }
    under_way_ = std::monostate{};
    begin();
    if (!lies) {
      done_(operations);
    }
  });
}

Disk::Write Disk::encode(const std::vector<Append>& appends) {
  std::size_t bytes = 0;
  for (const auto& append : appends) {
    for (const auto& entry : append.entries) {
      bytes += record_header_bytes + entry.payload->size();
    }
  }
  if (segments_.empty() || writer_.offset + bytes > segments_[segment_].bytes.size()) {
    begin_segment(bytes);
  }
  writer_.group += 1;
  writer_.group_offset = writer_.offset;
  Write write{.segment = segment_, .offset = writer_.offset, .bytes = {}};
  for (const auto& append : appends) {
    for (std::size_t i = 0; i < append.entries.size(); ++i) {
      const auto index = next(append.first, i);
      writer_.encode(index, append.entries[i], write.bytes);
      segments_[segment_].last = std::max(segments_[segment_].last, index);
    }
  }
  return write;
}

void Disk::begin_segment(std::size_t bytes_min) {
  segment_ = segments_.empty() ? segment_ + 1 : segments_.rbegin()->first + 1;
  const auto header = encode_segment_header({.number = segment_, .cluster = cluster});
  auto& segment = segments_[segment_];
  segment.bytes.assign(std::max(world_.options().segment_bytes, segment_header_bytes + bytes_min),
                       '\0');
  segment.bytes.replace(0, header.size(), header);
  writer_.offset = segment_header_bytes;
  writer_.chain = header_checksum(header);
}

void Disk::install_now(const Snapshot& snapshot) {
  put(snapshot);
  segments_.clear();
  begin_segment(0);
}

void Disk::put(const Snapshot& snapshot) {
  if (!snapshot_.has_value() || snapshot.mark.index > snapshot_->mark.index) {
    snapshot_ = snapshot;
  }
}

void Disk::cut_now(Index last) {
  while (segments_.size() > 1 && segments_.begin()->first != segment_ &&
         segments_.begin()->second.last <= last) {
    segments_.erase(segments_.begin());
  }
}

std::uint64_t Disk::log_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [number, segment] : segments_) {
    bytes += segment.bytes.size();
  }
  return bytes;
}

void Disk::compact(CompactionPlan plan, Compacted done) {
  world_.after(delay() * 3, [this, life = life_, plan = std::move(plan), done = std::move(done)] {
    if (life != life_) {
      return;
    }
    auto body = make_snapshot(plan);
    const auto bytes = body.size();
    put({.mark = plan.mark, .body = std::make_shared<const std::string>(std::move(body))});
    done(bytes);
  });
}

std::string Disk::make_snapshot(const CompactionPlan& plan) {
  auto newest = core::encode(plan.image);
  // The planted defect: the state of the previous snapshot.
  auto former = std::exchange(former_state_, newest);
  return world_.options().mutant == Mutant::snapshot_stale && !former.empty() ? former : newest;
}

void Disk::crash() {
  ++life_;
  if (const auto* write = std::get_if<Write>(&under_way_)) {
    tear(*write);
  } else if (const auto* snapshot = std::get_if<Snapshot>(&under_way_)) {
    // The snapshot is durable before the log is removed.
    const auto arrived = world_.random().below(3);
    if (arrived == 1) {
      put(*snapshot);
    } else if (arrived == 2) {
      install_now(*snapshot);
    }
  }
  under_way_ = std::monostate{};
  queue_.clear();
  durable_ = decay_.one_in(2) ? durable_ : durable_synced_;
  if (world_.options().mutant == Mutant::vote_not_durable && former_vote_.vote.term != Term{}) {
    vote_ = former_vote_.vote;
    write_votes(former_vote_, vote_slot_count);
  } else if (decay_.one_in(4)) {
    tear_vote();
  }
}

// A save interrupted by a crash. No message of it has left this member, so both terms are valid.
void Disk::tear_vote() {
  is_vote_whole_ = false;
  const VoteSlot next{.number = votes_ + 1, .vote = {.term = Term{vote_.term.get() + 1}}};
  if (decay_.one_in(2)) {
    ++votes_;
    vote_ = next.vote;
    write_votes(next, 1);
  } else {
    vote_slots_[0].replace(0, 20, encode_vote_slot(next), 0, 20);
  }
}

void Disk::tear(const Write& write) {
  auto& random = world_.random();
  auto& bytes = segments_[write.segment].bytes;
  const auto how = random.below(4);
  if (how == 0) {
    return;
  }
  if (how == 1) {
    const auto length = random.index(write.bytes.size() + 1);
    bytes.replace(write.offset, length, write.bytes, 0, length);
    return;
  }
  for (std::size_t at = 0; at < write.bytes.size();) {
    const auto length =
        std::min(write.bytes.size() - at, sector_bytes - (write.offset + at) % sector_bytes);
    if (how == 2 || random.one_in(2)) {
      bytes.replace(write.offset + at, length, write.bytes, at, length);
    }
    at += length;
  }
}

Disk::Found Disk::load() {
  Found found;
  found.snapshot = snapshot_;
  auto& recovered = found.recovered;
  if (!load_vote(recovered)) {
    return found;
  }
  if (snapshot_.has_value()) {
    recovered.snapshot = snapshot_->mark;
  }
  check_decayed_log();
  LogEnd read_end;
  for (auto& [number, segment] : segments_) {
    const auto scan =
        scan_segment(segment.bytes, {.number = number, .cluster = cluster}, durable_offset(number));
    if (!scan || scan->ending == Ending::damaged) {
      world_.fail("a torn log is taken for a damaged one: " +
                  (scan ? scan->why : scan.error().detail));
      return found;
    }
    segment.last = Index{};
    read_end = scan->records.empty() ? read_end : LogEnd{.segment = number, .offset = scan->end};
    for (const auto& record : scan->records) {
      take_record(record, found);
      segment.last = std::max(segment.last, record.index);
      writer_.group = std::max(writer_.group, record.group);
    }
  }
  settle_with_snapshot(found);
  durable_ = std::max(durable_, read_end);
  // Always an unused segment: the torn end stays behind in the old one.
  begin_segment(0);
  return found;
}

// One of the two copies may have decayed, unless a crash has torn the other.
bool Disk::load_vote(Recovered& recovered) {
  if (std::exchange(is_vote_whole_, true) && decay_.one_in(2)) {
    auto& slot = vote_slots_[decay_.index(vote_slot_count)];
    slot = decay_.one_in(2) ? std::string(vote_slot_bytes, '\0') : std::string();
  }
  const auto scan = scan_votes({vote_slots_[0], vote_slots_[1]});
  if (!scan) {
    world_.fail("one bad copy of the vote is too much: " + scan.error().detail);
    return false;
  }
  if (scan->newest.vote != vote_) {
    world_.fail("a bad copy of the vote takes the vote back from term " +
                std::to_string(vote_.term.get()) + " to " +
                std::to_string(scan->newest.vote.term.get()));
    return false;
  }
  votes_ = scan->newest.number;
  write_votes(scan->newest, vote_slot_count);
  recovered.term = vote_.term;
  recovered.voted_for = vote_.voted_for;
  return true;
}

std::size_t Disk::durable_offset(std::uint64_t segment) const {
  const bool is_known =
      durable_.segment == segment && world_.options().mutant != Mutant::log_end_ignored;
  return is_known ? durable_.offset : 0;
}

// Acknowledged records are stored once on each member: the decay of a sector must be detected.
// Tested on a copy, because a member that refuses to start would change the run.
void Disk::check_decayed_log() {
  const auto segment = segments_.find(durable_.segment);
  if (segment == segments_.end() || durable_.offset <= segment_header_bytes || !decay_.one_in(4)) {
    return;
  }
  auto bytes = segment->second.bytes;
  const auto at = segment_header_bytes + decay_.index(durable_.offset - segment_header_bytes);
  const auto begin = std::max(at / sector_bytes * sector_bytes, segment_header_bytes);
  const auto length = std::min(sector_bytes - begin % sector_bytes, bytes.size() - begin);
  bytes.replace(begin, length, length, decay_.one_in(2) ? '\0' : '?');
  const auto scan = scan_segment(bytes, {.number = segment->first, .cluster = cluster},
                                 durable_offset(segment->first));
  const bool is_missed = scan.has_value() && scan->ending != Ending::damaged;
  if (bytes != segment->second.bytes && is_missed) {
    world_.fail("an acknowledged record that decayed at offset " + std::to_string(begin) +
                " is taken for the end of the log");
  }
}

// Like server/raft/journal_loader: a repeated index replaces everything from there on.
void Disk::take_record(const Record& record, Found& found) {
  auto& recovered = found.recovered;
  auto& entries = recovered.entries;
  const auto covered = snapshot_.has_value() ? snapshot_->mark.index : Index{};
  if (entries.empty() ? record.index > Index{1} : record.index > next(last_of(recovered))) {
    if (record.index > next(covered)) {
      world_.fail("the log has a gap before entry " + std::to_string(record.index.get()));
      return;
    }
    entries.clear();
  }
  if (entries.empty() || record.index < recovered.first) {
    entries.clear();
    recovered.first = record.index;
  }
  entries.resize(record.index.get() - recovered.first.get());
  entries.push_back({.term = record.term,
                     .type = record.type,
                     .payload = std::make_shared<const std::string>(record.payload)});
}

void Disk::settle_with_snapshot(Found& found) {
  auto& recovered = found.recovered;
  if (!snapshot_.has_value()) {
    return;
  }
  const auto& mark = snapshot_->mark;
  const bool has_entries = !recovered.entries.empty();
  const bool is_inside =
      has_entries && recovered.first <= mark.index && last_of(recovered) >= mark.index;
  const bool follows = has_entries && recovered.first == next(mark.index);
  const bool agrees =
      is_inside && recovered.entries[mark.index.get() - recovered.first.get()].term == mark.term;
  if (!agrees && !follows) {
    recovered.entries.clear();
    segments_.clear();
  }
  if (recovered.entries.empty()) {
    recovered.first = next(mark.index);
  }
}

}  // namespace tenure::simulation
