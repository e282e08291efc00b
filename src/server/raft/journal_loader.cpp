#include "server/raft/journal_loader.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace tenure::server::raft {
namespace {

constexpr std::string_view what_to_do =
    " Entries that were acknowledged may be lost, so this member does not start. Restore the "
    "folder from a backup; in a cluster, empty the folder and let this member join again. To "
    "continue with the readable entries, remove this file and all later log files.";

std::string place(const std::filesystem::path& path, std::size_t offset) {
  return path.string() + " at offset " + std::to_string(offset);
}

}  // namespace

JournalLoader::JournalLoader(const JournalOptions& options, const SnapshotMark& snapshot)
    : options_(options),
      snapshot_(snapshot),
      durable_(DurableEnd::read(options.folder / durable_end_name)) {}

Result<void> JournalLoader::read() {
  for (const auto number : list_segments(options_.folder)) {
    if (auto read = read_segment(number); !read) {
      return read;
    }
  }
  if (auto settled = settle_with_snapshot(); !settled) {
    return settled;
  }
  return sync_last_segment();
}

Result<void> JournalLoader::read_segment(std::uint64_t number) {
  const auto path = path_of(number);
  // Writable, because the log may continue in this file.
  auto file = File::open(path, File::Mode::change);
  const auto bytes = file ? file->read_all() : Result<std::string>(std::unexpected(file.error()));
  if (!bytes) {
    return std::unexpected(bytes.error());
  }
  const bool is_marked = durable_.has_value() && durable_->segment == number;
  auto scan = scan_segment(*bytes, {.number = number, .cluster = options_.cluster},
                           is_marked ? durable_->offset : 0);
  if (!scan) {
    return fail(Errc::invalid_argument, "the log file " + path.string() + ": " +
                                            scan.error().detail + "." + std::string(what_to_do));
  }
  // Preallocated and not used yet: the log may continue in it.
  if (scan->records.empty() && scan->ending == Ending::clean) {
    untouched_.push_back({.number = number, .file = std::move(*file), .bytes = bytes->size()});
    return {};
  }
  if (auto taken = take_records(number, *scan); !taken) {
    return taken;
  }
  // An empty segment older than this one is removed together with its neighbours.
  for (const auto& empty : std::exchange(untouched_, {})) {
    segments_[empty.number].bytes = empty.bytes;
  }
  // The records are views of `bytes`, which ends with this function.
  scan->records.clear();
  used_ = Used{.number = number, .bytes = bytes->size(), .scan = std::move(*scan)};
  segments_[number].bytes = bytes->size();
  return {};
}

Result<void> JournalLoader::take_records(std::uint64_t number, const SegmentScan& scan) {
  std::size_t offset = segment_header_bytes;
  auto& use = segments_[number];
  for (const auto& record : scan.records) {
    if (auto taken = take_record(record, place(path_of(number), offset)); !taken) {
      return taken;
    }
    offset += record.bytes();
    use.last = std::max(use.last, record.index);
    group_ = std::max(group_, record.group);
  }
  if (scan.ending == Ending::damaged) {
    return fail(Errc::invalid_argument,
                "the log is damaged in " + place(path_of(number), scan.end) + ", where entry " +
                    std::to_string(next(last()).get()) + " is expected: " + scan.why + "." +
                    std::string(what_to_do));
  }
  return {};
}

Result<void> JournalLoader::take_record(const Record& record, const std::string& where) {
  const bool is_covered = next(snapshot_.index) >= record.index;
  if (entries_.empty() ? record.index > Index{1} : record.index > next(last())) {
    // Only entries that a snapshot covers may be missing.
    if (!is_covered) {
      const auto wanted =
          std::max(next(snapshot_.index), entries_.empty() ? Index{1} : next(last()));
      return fail(Errc::invalid_argument, "the log has a gap: " + where + " is entry " +
                                              std::to_string(record.index.get()) + ", and " +
                                              std::to_string(wanted.get()) + " is missing." +
                                              std::string(what_to_do));
    }
    entries_.clear();
  }
  if (entries_.empty() || record.index < first_) {
    entries_.clear();
    first_ = record.index;
  }
  // A record with an earlier index replaces the entries from there on, as in Raft.
  entries_.resize(record.index.get() - first_.get());
  entries_.push_back({.term = record.term,
                      .type = record.type,
                      .payload = std::make_shared<const std::string>(record.payload)});
  return {};
}

// A log that does not contain the last entry of the snapshot is discarded: the snapshot is newer.
Result<void> JournalLoader::settle_with_snapshot() {
  if (snapshot_.index != Index{}) {
    const bool is_inside =
        !entries_.empty() && first_ <= snapshot_.index && last() >= snapshot_.index;
    const bool follows = !entries_.empty() && first_ == next(snapshot_.index);
    const bool agrees =
        is_inside && entries_[snapshot_.index.get() - first_.get()].term == snapshot_.term;
    if (!agrees && !follows) {
      return discard();
    }
  }
  if (!entries_.empty() || snapshot_.index == Index{}) {
    return {};
  }
  first_ = next(snapshot_.index);
  return {};
}

// Durable before any new write: a later start would otherwise read the old segments as part of the
// new log.
Result<void> JournalLoader::discard() {
  entries_.clear();
  first_ = next(snapshot_.index);
  for (const auto& [number, use] : std::exchange(segments_, {})) {
    std::error_code error;
    if (std::filesystem::remove(path_of(number), error); error) {
      return fail(Errc::unavailable,
                  "cannot remove " + path_of(number).string() + ": " + error.message());
    }
    newest_removed_ = number;
  }
  used_.reset();
  return sync_folder(options_.folder);
}

// An earlier process may have written the end of the segment without a sync.
Result<void> JournalLoader::sync_last_segment() {
  if (!used_.has_value()) {
    return {};
  }
  auto file = File::open(path_of(used_->number), File::Mode::change);
  if (!file) {
    return std::unexpected(std::move(file).error());
  }
  return file->sync_content();
}

LogEnd JournalLoader::end() const {
  return used_.has_value() ? LogEnd{.segment = used_->number, .offset = used_->scan.end} : LogEnd{};
}

Result<JournalLoader::Continuation> JournalLoader::continue_log() {
  if (used_.has_value() && used_->scan.ending == Ending::torn) {
    options_.report(log::Level::warning, "log_tail_truncated",
                    {{"file", path_of(used_->number).string()},
                     {"offset", used_->scan.end},
                     {"bytes", used_->scan.dirty_end - used_->scan.end},
                     {"error", used_->scan.why}});
  }
  auto segment = next_segment();
  if (!segment && segment.error() == Errc::resource_exhausted && used_.has_value()) {
    return continue_in_last();
  }
  if (!segment) {
    return std::unexpected(std::move(segment).error());
  }
  const auto number = segment->number;
  const auto header = encode_segment_header({.number = number, .cluster = options_.cluster});
  Continuation continuation{
      .segment = std::move(*segment),
      .writer = {
          .group = group_ + 1, .offset = segment_header_bytes, .chain = header_checksum(header)}};
  // The segment after the next one may exist already, if the process ended after its allocation.
  if (untouched_.size() > 1 && untouched_[1].number == number + 1) {
    continuation.next = std::move(untouched_[1]);
  }
  return continuation;
}

// Always an unused segment: the torn end stays behind in the old one, which is never written again.
Result<Segment> JournalLoader::next_segment() {
  if (!untouched_.empty()) {
    return std::move(untouched_.front());
  }
  const auto number = used_.has_value() ? used_->number + 1 : newest_removed_ + 1;
  return make_segment(options_.folder, {.number = number, .cluster = options_.cluster},
                      options_.segment_bytes);
}

// Without space for a new segment, the torn end is overwritten with zeros, which needs no space.
Result<JournalLoader::Continuation> JournalLoader::continue_in_last() {
  auto file = File::open(path_of(used_->number), File::Mode::change);
  if (!file) {
    return std::unexpected(std::move(file).error());
  }
  const auto& scan = used_->scan;
  if (scan.dirty_end > scan.end) {
    const std::string zeros(scan.dirty_end - scan.end, '\0');
    auto wiped = file->write_at(scan.end, zeros);
    if (wiped) {
      wiped = file->sync_content();
    }
    if (!wiped) {
      return std::unexpected(std::move(wiped).error());
    }
  }
  options_.report(log::Level::error, "segment_allocation_failed",
                  {{"folder", options_.folder.string()}, {"error", "no space left on device"}});
  return Continuation{
      .segment = {.number = used_->number, .file = std::move(*file), .bytes = used_->bytes},
      .writer = {.group = group_ + 1, .offset = scan.end, .chain = scan.chain}};
}

}  // namespace tenure::server::raft
