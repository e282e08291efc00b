#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <tenure/error.hpp>

#include "server/raft/file.hpp"
#include "server/raft/report.hpp"
#include "sys/mutex.hpp"

namespace tenure::server::raft {

/// File name in the data directory.
inline constexpr const char* durable_end_name = "durable_end";

/// A position in the log: everything before it was durable once.
struct LogEnd {
  std::uint64_t segment{};  ///< Number of the segment.
  std::size_t offset{};     ///< Offset in the segment.

  friend auto operator<=>(const LogEnd&, const LogEnd&) = default;
};

/// Records the durable end of the log in a file of its own. It lets a later start distinguish a
/// decayed record that was acknowledged from a write that a crash tore.
///
/// The file has the newest position twice, each in a sector of its own: "TENUREDE", segment (8),
/// offset (8), CRC-32C of these (4). The larger readable one counts. A position is written after
/// the fdatasync that it reports, so it is never too large. It may be too small: the kernel keeps
/// it if only the process dies, but after a power failure it lags by up to `sync_delay`. A position
/// that cannot be written is reported once and weakens only the check, so the server goes on.
///
/// note() belongs to one thread. A second thread makes the file durable.
class DurableEnd {
 public:
  struct Options {
    std::filesystem::path path;
    /// Upper bound for how long a position stays in memory only. Costs one fdatasync per interval
    /// in which the log was written.
    std::chrono::milliseconds sync_delay{1000};
    Report report;
  };

  /// The position that an earlier process recorded; nothing if there is none that is readable.
  [[nodiscard]] static std::optional<LogEnd> read(const std::filesystem::path& path);

  explicit DurableEnd(Options options);
  DurableEnd(const DurableEnd&) = delete;
  DurableEnd& operator=(const DurableEnd&) = delete;
  /// Makes the last position durable.
  ~DurableEnd();

  /// Replaces what the file had, durably. Call once, before note().
  void begin(LogEnd end);
  /// REQUIRES: the log is durable up to `end`. Does nothing before begin().
  void note(LogEnd end);

 private:
  enum class Padding : bool { none, whole_block };
  [[nodiscard]] Result<void> write(LogEnd end, Padding padding);
  void give_up(const Error& error);
  void run();
  void sync();

  const Options options_;
  File file_;
  std::atomic<bool> has_failed_ = false;
  sys::Mutex mutex_;  ///< Guards: the flags of the sync thread.
  sys::Signal changed_;
  bool is_dirty_ TENURE_GUARDED_BY(mutex_) = false;
  bool is_stopping_ TENURE_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  ///< Declared last: it uses every other member. Runs from begin() on.
};

}  // namespace tenure::server::raft
