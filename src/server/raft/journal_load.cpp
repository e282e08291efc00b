#include <algorithm>
#include <optional>
#include <utility>

#include "server/raft/journal.hpp"

namespace tenure::server::raft {
namespace {

constexpr std::string_view what_to_do =
    " Entries that were acknowledged may be lost, so this member does not start. Restore the "
    "folder "
    "from a backup; in a cluster, empty the folder and let this member join anew. To go on with "
    "what "
    "is readable, remove this file and all later log files by hand.";

std::string place(const std::filesystem::path& path, std::size_t offset) {
  return path.string() + " at offset " + std::to_string(offset);
}

}  // namespace

/// Reads the segments of a folder, one after the other, and makes a journal that continues them.
class JournalLoader {
 public:
  JournalLoader(JournalOptions options, const SnapshotMark& snapshot)
      : snapshot_(snapshot),
        journal_(std::make_unique<Journal>(std::move(options))),
        durable_(DurableEnd::read(folder() / durable_end_name)) {}

  Result<Journal::Opened> load() {
    for (const auto number : list_segments(folder())) {
      if (auto read = read_segment(number); !read) {
        return std::unexpected(std::move(read).error());
      }
    }
    if (auto kept = settle_with_snapshot(); !kept) {
      return std::unexpected(std::move(kept).error());
    }
    if (auto recorded = record_end(); !recorded) {
      return std::unexpected(std::move(recorded).error());
    }
    if (auto begun = begin(); !begun) {
      return std::unexpected(std::move(begun).error());
    }
    return Journal::Opened{
        .journal = std::move(journal_), .first = first_, .entries = std::move(entries_)};
  }

 private:
  struct Used {
    std::uint64_t number{};
    std::size_t bytes{};
    SegmentScan scan;  ///< Without its records.
  };

  [[nodiscard]] const std::filesystem::path& folder() const { return journal_->options_.folder; }
  [[nodiscard]] Index last() const { return Index{first_.get() + entries_.size() - 1}; }

  Result<void> read_segment(std::uint64_t number) {
    const auto path = segment_path(folder(), number);
    auto file = File::open(path, File::Mode::change);
    const auto bytes = file ? file->read_all() : Result<std::string>(std::unexpected(file.error()));
    if (!bytes) {
      return std::unexpected(bytes.error());
    }
    const bool is_marked = durable_.has_value() && durable_->segment == number;
    auto scan = scan_segment(*bytes, {.number = number, .cluster = journal_->options_.cluster},
                             is_marked ? durable_->offset : 0);
    if (!scan) {
      return fail(Errc::invalid_argument, "the log file " + path.string() + " cannot be used: " +
                                              scan.error().detail + "." + std::string(what_to_do));
    }
    if (scan->records.empty() && scan->ending == Ending::clean) {
      untouched_.push_back({.number = number, .file = std::move(*file), .bytes = bytes->size()});
      return {};
    }
    if (auto taken = take_records(path, *scan); !taken) {
      return taken;
    }
    // Whatever is empty and yet older than this one will be removed with its neighbours.
    for (const auto& empty : std::exchange(untouched_, {})) {
      journal_->known_[empty.number].bytes = empty.bytes;
      journal_->bytes_ += empty.bytes;
    }
    scan->records.clear();
    used_ = Used{.number = number, .bytes = bytes->size(), .scan = std::move(*scan)};
    journal_->known_[number].bytes = bytes->size();
    journal_->bytes_ += bytes->size();
    return {};
  }

  Result<void> take_records(const std::filesystem::path& path, const SegmentScan& scan) {
    std::size_t offset = segment_header_bytes;
    auto& known = journal_->known_[number_of(path)];
    for (const auto& record : scan.records) {
      if (auto taken = take_record(record, place(path, offset)); !taken) {
        return taken;
      }
      offset += record.bytes();
      known.last = std::max(known.last, record.index);
      group_ = std::max(group_, record.group);
    }
    if (scan.ending == Ending::damaged) {
      return fail(Errc::invalid_argument,
                  "the log is damaged in " + place(path, scan.end) + ", where entry " +
                      std::to_string(next(last()).get()) + " is expected: " + scan.why + "." +
                      std::string(what_to_do));
    }
    return {};
  }

  static std::uint64_t number_of(const std::filesystem::path& path) {
    return std::stoull(path.filename().string().substr(4));
  }

  Result<void> take_record(const Record& record, const std::string& where) {
    const bool is_covered = next(snapshot_.index) >= record.index;
    if (entries_.empty() ? record.index > Index{1} : record.index > next(last())) {
      // Entries that a snapshot stands for may be missing, others not.
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
    entries_.resize(record.index.get() - first_.get());
    entries_.push_back({.term = record.term,
                        .type = record.type,
                        .payload = std::make_shared<const std::string>(record.payload)});
    return {};
  }

  // The snapshot wins over a log that does not contain its last entry.
  Result<void> settle_with_snapshot() {
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

  // Durably, before anything new is written: next time it would look like the past of the new log.
  Result<void> discard() {
    entries_.clear();
    first_ = next(snapshot_.index);
    for (const auto& [number, known] : std::exchange(journal_->known_, {})) {
      std::error_code error;
      if (std::filesystem::remove(segment_path(folder(), number), error); error) {
        return fail(Errc::unavailable, "cannot remove " + segment_path(folder(), number).string() +
                                           ": " + error.message());
      }
      newest_removed_ = number;
    }
    journal_->bytes_ = 0;
    used_.reset();
    return sync_folder(folder());
  }

  // What was read counts as acknowledged from now on. The process before may have written the end
  // of it without a sync.
  Result<void> record_end() {
    if (!used_.has_value()) {
      journal_->durable_end_.begin({});
      return {};
    }
    auto file = File::open(segment_path(folder(), used_->number), File::Mode::change);
    if (!file) {
      return std::unexpected(std::move(file).error());
    }
    if (auto synced = file->sync_content(); !synced) {
      return synced;
    }
    journal_->durable_end_.begin({.segment = used_->number, .offset = used_->scan.end});
    return {};
  }

  Result<void> begin() {
    if (used_.has_value() && used_->scan.ending == Ending::torn) {
      journal_->options_.report(
          Severity::warning,
          "the log ends torn in " + place(segment_path(folder(), used_->number), used_->scan.end) +
              " (" + used_->scan.why +
              "): the last write before a crash was not finished and not "
              "acknowledged. " +
              std::to_string(used_->scan.dirty_end - used_->scan.end) + " bytes are cut off.");
    }
    auto segment = next_segment();
    if (!segment && segment.error() == Errc::resource_exhausted && used_.has_value()) {
      return continue_in_last();
    }
    if (!segment) {
      return std::unexpected(std::move(segment).error());
    }
    const auto number = segment->number;
    const auto header =
        encode_segment_header({.number = number, .cluster = journal_->options_.cluster});
    auto begun = journal_->begin_in(
        std::move(*segment),
        {.group = group_ + 1, .offset = segment_header_bytes, .chain = header_checksum(header)});
    if (!begun) {
      return begun;
    }
    if (untouched_.size() > 1 && untouched_[1].number == number + 1) {
      journal_->reserve_.prepare(std::move(untouched_[1]));
    } else {
      journal_->reserve_.prepare(number + 1);
    }
    return {};
  }

  // Never one that was written to before: what is torn at its end stays behind.
  Result<Segment> next_segment() {
    if (!untouched_.empty()) {
      return std::move(untouched_.front());
    }
    const auto number = used_.has_value() ? used_->number + 1 : newest_removed_ + 1;
    return make_segment(folder(), {.number = number, .cluster = journal_->options_.cluster},
                        journal_->options_.segment_bytes);
  }

  // There is no space for a new segment: the torn end is overwritten with zeros, which needs none.
  Result<void> continue_in_last() {
    auto file = File::open(segment_path(folder(), used_->number), File::Mode::change);
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
        return wiped;
      }
    }
    journal_->options_.report(
        Severity::error, "there is no space for a new segment of the log in " + folder().string() +
                             "; it continues in the last one.");
    journal_->reserve_.prepare(used_->number + 1);
    return journal_->begin_in(
        {.number = used_->number, .file = std::move(*file), .bytes = used_->bytes},
        {.group = group_ + 1, .offset = scan.end, .chain = scan.chain});
  }

  SnapshotMark snapshot_;
  std::unique_ptr<Journal> journal_;
  std::optional<LogEnd> durable_;  ///< As an earlier process recorded it.
  Index first_{1};
  std::vector<Entry> entries_;
  std::uint64_t group_ = 0;
  std::optional<Used> used_;        ///< The last segment with something in it.
  std::vector<Segment> untouched_;  ///< After it.
  std::uint64_t newest_removed_ = 0;
};

Result<Journal::Opened> Journal::open(JournalOptions options, const SnapshotMark& snapshot) {
  return JournalLoader(std::move(options), snapshot).load();
}

}  // namespace tenure::server::raft
