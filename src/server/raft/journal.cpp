#include "server/raft/journal.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace tenure::server::raft {

Journal::Journal(JournalOptions options)
    : options_(std::move(options)),
      durable_end_({.path = options_.folder / durable_end_name, .report = options_.report}),
      reserve_({.folder = options_.folder,
                .cluster = options_.cluster,
                .segment_bytes = options_.segment_bytes,
                .retry = options_.retry,
                .report = options_.report}) {}

Result<Journal::Opened> Journal::open(JournalOptions options, const SnapshotMark& snapshot) {
  auto journal = std::make_unique<Journal>(std::move(options));
  JournalLoader loader(journal->options_, snapshot);
  if (auto read = loader.read(); !read) {
    return std::unexpected(std::move(read).error());
  }
  // Before continue_log(), which may overwrite a torn end: everything that was read counts as
  // acknowledged from now on.
  journal->durable_end_.begin(loader.end());
  auto continuation = loader.continue_log();
  if (!continuation) {
    return std::unexpected(std::move(continuation).error());
  }
  for (const auto& [number, use] : loader.segments()) {
    journal->known_[number] = use;
    journal->bytes_ += use.bytes;
  }
  auto& [segment, writer, next_segment] = *continuation;
  const auto number = segment.number;
  if (auto begun = journal->begin_in(std::move(segment), writer); !begun) {
    return std::unexpected(std::move(begun).error());
  }
  if (next_segment.has_value()) {
    journal->reserve_.prepare(std::move(*next_segment));
  } else {
    journal->reserve_.prepare(number + 1);
  }
  return Opened{
      .journal = std::move(journal), .first = loader.first(), .entries = loader.take_entries()};
}

void Journal::append(Index first, const std::vector<Entry>& entries) {
  for (const auto& entry : entries) {
    waiting_.push_back({.index = first, .entry = entry});
    first = next(first);
  }
}

// A segment boundary splits the entries into several groups, each with an fdatasync of its own. The
// next segment is started only after the sync of the last one, so a recovery never sees a gap.
Synced Journal::sync() {
  const auto began = std::chrono::steady_clock::now();
  Synced synced{.entries = waiting_.size()};
  std::string bytes;
  for (std::size_t done = 0; done < waiting_.size() && !has_given_up_;) {
    const auto fitted = encode_what_fits(done, bytes);
    if (fitted == done) {
      has_given_up_ = !roll_over(segment_header_bytes + record_header_bytes +
                                 waiting_[done].entry.payload->size());
      continue;
    }
    if (!write_group(bytes)) {
      has_given_up_ = true;
      break;
    }
    auto& known = known_[segment_.number];
    known.last = std::max(known.last, waiting_[fitted - 1].index);
    done = fitted;
  }
  waiting_.clear();
  synced.took = std::chrono::steady_clock::now() - began;
  return synced;
}

// Encodes entries up to the first that does not fit into the present segment; returns the index of
// that entry.
std::size_t Journal::encode_what_fits(std::size_t begin, std::string& out) {
  out.clear();
  writer_.group_offset = writer_.offset;
  std::size_t end = begin;
  while (end < waiting_.size()) {
    const auto& [index, entry] = waiting_[end];
    if (writer_.offset + record_header_bytes + entry.payload->size() > segment_.bytes) {
      break;
    }
    writer_.encode(index, entry, out);
    ++end;
  }
  return end;
}

// Order: data, fdatasync, durable end. The durable end is written last, so it never exceeds what is
// durable.
bool Journal::write_group(const std::string& bytes) {
  auto written = out_.write(segment_.file, bytes);
  // Copy-on-write file systems can lack space even for an allocated range. Repeating a failed write
  // is safe, unlike repeating a failed fsync.
  while (!written && written.error() == Errc::resource_exhausted) {
    if (!reserve_.may_wait()) {
      return false;
    }
    options_.report(log::Level::error, "log_write_waits_for_space",
                    {{"error", written.error().detail}});
    std::this_thread::sleep_for(options_.retry);
    written = out_.write(segment_.file, bytes);
  }
  if (written) {
    written = segment_.file.sync_content();
  }
  if (!written) {
    stop_process(options_.report, "cannot sync the log at offset " +
                                      std::to_string(writer_.group_offset) + ": " +
                                      written.error().detail);
  }
  durable_end_.note({.segment = segment_.number, .offset = writer_.offset});
  ++writer_.group;
  left_ = segment_.bytes - writer_.offset;
  return true;
}

// Continues in the next segment, which is normally preallocated; requests the one after it at once.
bool Journal::roll_over(std::size_t bytes_min) {
  auto taken = reserve_.take(bytes_min);
  if (!taken.has_value()) {
    return false;
  }
  const SegmentId id{.number = taken->number, .cluster = options_.cluster};
  const auto header = encode_segment_header(id);
  GroupWriter writer{
      .group = writer_.group, .offset = segment_header_bytes, .chain = header_checksum(header)};
  if (auto begun = begin_in(std::move(*taken), writer); !begun) {
    stop_process(options_.report,
                 "cannot continue the log in the next segment: " + begun.error().detail);
  }
  reserve_.prepare(segment_.number + 1);
  return true;
}

Result<void> Journal::begin_in(Segment segment, const GroupWriter& writer) {
  auto out = BlockWriter::begin(segment.file, segment.bytes, writer.offset);
  if (!out) {
    return std::unexpected(std::move(out).error());
  }
  out_ = std::move(*out);
  segment_ = std::move(segment);
  writer_ = writer;
  const auto [known, is_new] = known_.try_emplace(segment_.number);
  if (is_new) {
    known->second.bytes = segment_.bytes;
    bytes_ += segment_.bytes;
  }
  left_ = segment_.bytes - writer_.offset;
  return {};
}

void Journal::cut(Index last) {
  std::vector<std::uint64_t> old;
  for (auto it = known_.begin(); it->first != segment_.number && it->second.last <= last;) {
    old.push_back(it->first);
    bytes_ -= it->second.bytes;
    it = known_.erase(it);
  }
  if (!old.empty()) {
    reserve_.remove(std::move(old));
  }
}

void Journal::restart() {
  waiting_.clear();
  if (has_given_up_) {
    return;
  }
  auto old = std::exchange(known_, {});
  const auto old_bytes = bytes_.exchange(0);
  if (!roll_over(segment_header_bytes)) {
    has_given_up_ = true;  // The next start finds a snapshot that is newer than the log.
    known_ = std::move(old);
    bytes_ = old_bytes;
    return;
  }
  for (const auto& [number, known] : old) {
    const auto path = segment_path(options_.folder, number);
    std::error_code error;
    // The next start would read it as the continuation of the snapshot.
    if (std::filesystem::remove(path, error); error) {
      stop_process(options_.report, "cannot remove " + path.string() + ": " + error.message());
    }
  }
  if (auto synced = sync_folder(options_.folder); !synced) {
    stop_process(options_.report, "cannot empty the log: " + synced.error().detail);
  }
}

Space Journal::space() const {
  return {.left = left_, .is_next_ready = reserve_.is_ready(), .is_short = reserve_.has_failed()};
}

}  // namespace tenure::server::raft
