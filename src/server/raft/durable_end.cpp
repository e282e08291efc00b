#include "server/raft/durable_end.hpp"

#include <algorithm>
#include <utility>

#include "core/bytes.hpp"

namespace tenure::server::raft {
namespace {

constexpr std::string_view magic = "TENUREDE";
// Distance of the copies: 4096 bytes, the largest usual sector, so that one bad sector damages one
// copy only.
constexpr std::size_t copy_distance = 4096;
constexpr std::size_t copy_count = 2;
constexpr std::size_t copy_bytes = 8 + 2 * 8 + 4;

std::string encode(LogEnd end) {
  core::ByteWriter writer;
  writer.raw(magic);
  writer.fixed64(end.segment);
  writer.fixed64(end.offset);
  writer.fixed32(core::crc32c(writer.bytes()));
  return std::move(writer).take();
}

std::optional<LogEnd> decode(std::string_view bytes) {
  if (!bytes.starts_with(magic)) {
    return std::nullopt;
  }
  core::ByteReader reader(bytes.substr(magic.size()));
  const LogEnd end{.segment = reader.fixed64(), .offset = reader.fixed64()};
  if (reader.fixed32() != core::crc32c(bytes.substr(0, copy_bytes - 4))) {
    return std::nullopt;
  }
  return end;
}

}  // namespace

std::optional<LogEnd> DurableEnd::read(const std::filesystem::path& path) {
  const auto file = File::open(path, File::Mode::read);
  if (!file) {
    return std::nullopt;
  }
  std::optional<LogEnd> newest;
  // An unreadable or torn copy is skipped, and the other one counts.
  for (std::size_t copy = 0; copy < copy_count; ++copy) {
    std::string bytes(copy_bytes, '\0');
    if (file->read_at(copy * copy_distance, bytes)) {
      newest = std::max(newest, decode(bytes));
    }
  }
  return newest;
}

DurableEnd::DurableEnd(Options options) : options_(std::move(options)) {}

DurableEnd::~DurableEnd() {
  const sys::MutexGuard guard(mutex_);
  is_stopping_ = true;
  changed_.notify_all();
}

void DurableEnd::begin(LogEnd end) {
  const bool is_new = !std::filesystem::exists(options_.path);
  auto file = File::open(options_.path, File::Mode::change);
  if (!file) {
    give_up(file.error());
    return;
  }
  file_ = std::move(*file);
  auto written = write(end, Padding::whole_block);
  if (written) {
    written = file_.sync_content();
  }
  if (written && is_new) {
    written = sync_folder(options_.path.parent_path());
  }
  if (!written) {
    give_up(written.error());
    return;
  }
  thread_ = std::jthread([this] { run(); });
}

void DurableEnd::note(LogEnd end) {
  if (!file_.is_open() || has_failed_) {
    return;
  }
  if (auto written = write(end, Padding::none); !written) {
    give_up(written.error());
    return;
  }
  const sys::MutexGuard guard(mutex_);
  // Only the first position of an interval wakes the thread.
  if (!std::exchange(is_dirty_, true)) {
    changed_.notify_all();
  }
}

// Whole blocks are written without reading them first, which fails where a sector has decayed.
Result<void> DurableEnd::write(LogEnd end, Padding padding) {
  auto bytes = encode(end);
  bytes.resize(padding == Padding::whole_block ? copy_distance : bytes.size());
  for (std::size_t copy = 0; copy < copy_count; ++copy) {
    if (auto written = file_.write_at(copy * copy_distance, bytes); !written) {
      return written;
    }
  }
  return {};
}

void DurableEnd::give_up(const Error& error) {
  if (!has_failed_.exchange(true) && options_.report) {
    options_.report(log::Level::warning, "durable_end_write_failed", {{"error", error.detail}});
  }
}

void DurableEnd::run() {
  mutex_.lock();
  while (!is_stopping_) {
    if (!is_dirty_) {
      changed_.wait(mutex_);
      continue;
    }
    // Collects positions for one interval; the destructor ends the wait early.
    changed_.wait_for(mutex_, options_.sync_delay);
    is_dirty_ = false;
    mutex_.unlock();
    sync();
    mutex_.lock();
  }
  const bool is_dirty = is_dirty_;
  mutex_.unlock();
  if (is_dirty) {
    sync();
  }
}

void DurableEnd::sync() {
  if (has_failed_) {
    return;
  }
  if (auto synced = file_.sync_content(); !synced) {
    give_up(synced.error());
  }
}

}  // namespace tenure::server::raft
