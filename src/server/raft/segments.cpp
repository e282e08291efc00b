#include "server/raft/segments.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "server/raft/block_writer.hpp"

namespace tenure::server::raft {
namespace {

constexpr std::string_view unfinished_suffix = ".new";

// REQUIRES: the header is good.
Result<void> fill(File& file, SegmentId id, std::size_t bytes) {
  const std::string zeros(std::min<std::size_t>(bytes, 1 << 20), '\0');
  for (std::size_t at = 0; at < bytes; at += zeros.size()) {
    const auto part = std::string_view(zeros).substr(0, bytes - at);
    if (auto written = file.write_at(at, part); !written) {
      return written;
    }
  }
  if (auto written = file.write_at(0, encode_segment_header(id)); !written) {
    return written;
  }
  return file.sync_content();
}

}  // namespace

std::filesystem::path segment_path(const std::filesystem::path& folder, std::uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof name, "log-%012" PRIu64, number);
  return folder / name;
}

std::vector<std::uint64_t> list_segments(const std::filesystem::path& folder) {
  std::vector<std::uint64_t> numbers;
  std::vector<std::filesystem::path> unfinished;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    std::uint64_t number = 0;
    if (std::sscanf(name.c_str(), "log-%" SCNu64, &number) != 1) {
      continue;
    }
    if (name.ends_with(unfinished_suffix)) {
      unfinished.push_back(entry.path());
    } else {
      numbers.push_back(number);
    }
  }
  for (const auto& path : unfinished) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  std::ranges::sort(numbers);
  return numbers;
}

Result<Segment> make_segment(const std::filesystem::path& folder, SegmentId id, std::size_t bytes) {
  const auto path = segment_path(folder, id.number);
  auto unfinished = path;
  unfinished += unfinished_suffix;
  auto file = File::open(unfinished, File::Mode::create);
  if (!file) {
    return std::unexpected(std::move(file).error());
  }
  auto done = fill(*file, id, bytes);
  if (done) {
    done = rename_durably(unfinished, path);
  }
  if (!done) {
    ::unlink(unfinished.c_str());
    return std::unexpected(std::move(done).error());
  }
  return Segment{.number = id.number, .file = std::move(*file), .bytes = bytes};
}

SegmentReserve::SegmentReserve(Options options)
    : options_(std::move(options)), thread_([this] { run(); }) {}

SegmentReserve::~SegmentReserve() {
  const sys::MutexGuard guard(mutex_);
  is_stopping_ = true;
  changed_.notify_all();
}

void SegmentReserve::prepare(std::uint64_t number) {
  const sys::MutexGuard guard(mutex_);
  wanted_ = number;
  changed_.notify_all();
}

void SegmentReserve::prepare(Segment ready) {
  const sys::MutexGuard guard(mutex_);
  ready_ = std::move(ready);
}

std::optional<Segment> SegmentReserve::take(std::size_t bytes_min) {
  while (true) {
    std::uint64_t number = 0;
    {
      const sys::MutexGuard guard(mutex_);
      while (!ready_.has_value()) {
        if (!may_wait_ && failure_.has_value()) {
          return std::nullopt;
        }
        changed_.wait(mutex_);
      }
      if (ready_->bytes >= bytes_min) {
        return std::move(*std::exchange(ready_, std::nullopt));
      }
      number = ready_->number;
    }
    // An entry larger than a whole segment gets one of its own size, in place of the ready one.
    auto larger = make_segment(options_.folder, {.number = number, .cluster = options_.cluster},
                               BlockWriter::whole_blocks(bytes_min));
    const sys::MutexGuard guard(mutex_);
    if (larger) {
      ready_.reset();
      return std::move(*larger);
    }
    note_failure(larger.error());
    if (!may_wait_) {
      return std::nullopt;
    }
    changed_.wait_for(mutex_, options_.retry);
  }
}

void SegmentReserve::stop_waiting() {
  const sys::MutexGuard guard(mutex_);
  may_wait_ = false;
  changed_.notify_all();
}

bool SegmentReserve::may_wait() const {
  const sys::MutexGuard guard(mutex_);
  return may_wait_;
}

void SegmentReserve::remove(std::vector<std::uint64_t> numbers) {
  const sys::MutexGuard guard(mutex_);
  to_remove_.insert(to_remove_.end(), numbers.begin(), numbers.end());
  changed_.notify_all();
}

bool SegmentReserve::is_ready() const {
  const sys::MutexGuard guard(mutex_);
  return ready_.has_value();
}

bool SegmentReserve::has_failed() const {
  const sys::MutexGuard guard(mutex_);
  return !ready_.has_value() && failure_.has_value();
}

void SegmentReserve::run() {
  mutex_.lock();
  while (!is_stopping_ || !to_remove_.empty()) {
    if (!to_remove_.empty()) {
      const auto doomed = std::exchange(to_remove_, {});
      mutex_.unlock();
      remove_now(doomed);
      mutex_.lock();
    } else if (wanted_.has_value()) {
      const auto number = *wanted_;
      mutex_.unlock();
      make(number);
      mutex_.lock();
      if (failure_.has_value() && !is_stopping_ && to_remove_.empty()) {
        changed_.wait_for(mutex_, options_.retry);
      }
    } else {
      changed_.wait(mutex_);
    }
  }
  mutex_.unlock();
}

void SegmentReserve::make(std::uint64_t number) {
  auto made = make_segment(options_.folder, {.number = number, .cluster = options_.cluster},
                           options_.segment_bytes);
  std::function<void()> on_change;
  {
    const sys::MutexGuard guard(mutex_);
    note(std::move(made));
    on_change = on_change_;
  }
  changed_.notify_all();
  on_change();
}

void SegmentReserve::note(Result<Segment> made) {
  if (!made) {
    note_failure(made.error());
    return;
  }
  if (failure_.has_value()) {
    options_.report(log::Level::info, "disk_space_available",
                    {{"folder", options_.folder.string()}});
  }
  failure_.reset();
  wanted_.reset();
  ready_ = std::move(*made);
}

void SegmentReserve::when_changed(std::function<void()> on_change) {
  const sys::MutexGuard guard(mutex_);
  on_change_ = std::move(on_change);
}

void SegmentReserve::note_failure(const Error& error) {
  if (!failure_.has_value()) {
    options_.report(log::Level::error, "segment_allocation_failed",
                    {{"folder", options_.folder.string()}, {"error", error.detail}});
  }
  failure_ = error;
}

void SegmentReserve::remove_now(const std::vector<std::uint64_t>& numbers) {
  for (const auto number : numbers) {
    std::error_code error;
    std::filesystem::remove(segment_path(options_.folder, number), error);
    if (error) {
      options_.report(
          log::Level::warning, "segment_removal_failed",
          {{"file", segment_path(options_.folder, number).string()}, {"error", error.message()}});
    }
  }
}

}  // namespace tenure::server::raft
