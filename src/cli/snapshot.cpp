// tenure snapshot: saves the state of a server to a file, and inspects such files.

#include "core/snapshot.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/latencies.hpp"
#include "cli/output.hpp"
#include "cli/service.hpp"
#include "cli/signals.hpp"
#include "core/bytes.hpp"
#include "core/saved_state.hpp"
#include "sys/json_writer.hpp"
#include "tenure/v1/admin.pb.h"

namespace tenure::cli {
namespace {

using std::chrono::milliseconds;

/// Prefixes with the most locks that are listed.
constexpr std::size_t prefixes_default = 10;
constexpr std::uint64_t prefixes_max = 10'000;

/// Error of the last system call. REQUIRES: called before any other call that may set errno.
Error from_errno(const std::string& what) {
  return {Errc::unavailable, what + ": " + std::strerror(errno)};
}

/// File that appears under its final name only when it is complete and durable. Writes to NAME.part
/// and renames it: a reader, or a backup job, never sees half a snapshot, and a failure leaves an
/// existing file untouched. Not thread safe.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path) {
    NewFile file(path);
    // Readable by the owner only: names and metadata of locks may be confidential.
    file.descriptor_ = open(file.part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file.descriptor_ < 0) {
      return std::unexpected(from_errno(file.part_));
    }
    return file;
  }
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        part_(std::move(other.part_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        failure_(std::move(other.failure_)) {}
  NewFile& operator=(NewFile&&) = delete;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (descriptor_ >= 0) {
      close(descriptor_);
      unlink(part_.c_str());
    }
  }

  /// Name of the incomplete file, for a signal handler that has to remove it.
  [[nodiscard]] const std::string& part() const noexcept { return part_; }

  /// Appends. The first failure is kept, and later calls have no effect.
  void add(std::string_view bytes) {
    while (!bytes.empty() && !failure_) {
      const auto written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0) {
        failure_ = from_errno(part_);
        return;
      }
      // A write may be partial.
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

  /// Syncs the file and renames it to its final name.
  [[nodiscard]] Result<void> keep() {
    if (failure_) {
      return std::unexpected(*failure_);
    }
    // Sync before the rename: after a crash the name must not refer to a file without its content.
    if (fsync(descriptor_) != 0 || rename(part_.c_str(), path_.c_str()) != 0) {
      return std::unexpected(from_errno(part_));
    }
    close(std::exchange(descriptor_, -1));
    // The rename is an entry of the folder, which has to be synced as well. A failure is ignored,
    // because some file systems do not support it, and the content is safe.
    const auto folder = std::filesystem::absolute(path_).parent_path();
    if (const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); opened >= 0) {
      fsync(opened);
      close(opened);
    }
    return {};
  }

 private:
  explicit NewFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {}

  std::string path_;
  std::string part_;
  int descriptor_ = -1;
  std::optional<Error> failure_{};
};

/// Parsed snapshot file. Everything that a file contains, verified.
struct Opened {
  core::SavedFrom from{};
  core::State state{};
  std::size_t file_bytes = 0;
};

/// Reads and verifies a file. The errors name the file and the position of the damage.
Result<Opened> open_saved(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(Errc::invalid_argument, path + ": " + std::strerror(errno));
  }
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  auto saved = core::read_saved_state(bytes);
  if (!saved) {
    return fail(Errc::invalid_argument, path + ": " + saved.error().detail);
  }
  auto state = core::decode(saved->state);
  if (!state) {
    return fail(Errc::invalid_argument, path + ": " + state.error().detail);
  }
  return Opened{.from = saved->from, .state = *std::move(state), .file_bytes = bytes.size()};
}

/// Counts of the locks with one name prefix.
struct Below {
  std::string prefix{};
  std::uint64_t locks = 0;
  std::uint64_t holds = 0;
  std::uint64_t waits = 0;
};

/// Sorted by number of locks, largest first. The prefix ends with the first slash, by the
/// convention of names such as "db/orders". A name without a slash is its own prefix.
std::vector<Below> prefixes_of(const core::State& state, std::size_t most) {
  std::map<std::string, Below, std::less<>> found;
  for (const auto& [resource, lock] : state.locks.locks()) {
    const auto name = resource.name.view();
    const auto slash = name.find('/');
    const std::string prefix(slash == std::string_view::npos ? name : name.substr(0, slash + 1));
    auto& below = found[prefix];
    ++below.locks;
    below.holds += lock.holds().size();
    below.waits += lock.queue().size();
  }
  // Cut after the sort, so that the largest prefixes remain.
  std::vector<Below> all;
  for (auto& [prefix, below] : found) {
    below.prefix = prefix;
    all.push_back(std::move(below));
  }
  // Stable after a sorted map: prefixes with equal counts stay in the order of their names.
  std::ranges::stable_sort(all, std::greater(), &Below::locks);
  all.resize(std::min(all.size(), most));
  return all;
}

/// Time in ISO 8601. UTC, so that files of different machines can be compared.
std::string utc(std::uint64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

/// Time of the cluster clock, which measures leases and is no time of day.
milliseconds cluster_time_of(const core::State& state) {
  return std::chrono::duration_cast<milliseconds>(state.now);
}

void print_json(const Opened& opened, const std::vector<Below>& prefixes) {
  const auto& [from, state, file_bytes] = opened;
  sys::JsonWriter json;
  json.begin_object()
      .field("version", std::uint64_t{core::snapshot_format(state.version)})
      .id("revision", state.revision.get())
      .id("compact_revision", state.events.compact_revision().get())
      .field("cluster_time_ms", static_cast<std::uint64_t>(cluster_time_of(state).count()))
      .field("locks", std::uint64_t{state.locks.locks().size()})
      .field("holds", std::uint64_t{state.locks.holds().size()})
      .field("waits", std::uint64_t{state.locks.waits().size()})
      .field("leases", std::uint64_t{state.leases.all().size()})
      .field("events", std::uint64_t{state.events.all().size()})
      .field("bytes", std::uint64_t{file_bytes})
      .id("cluster", from.cluster)
      .id("member", from.member)
      .id("term", from.term)
      .id("index", from.index)
      .field("saved_at", std::string_view(utc(from.saved_at_ms)))
      .key("prefixes")
      .begin_array();
  for (const auto& below : prefixes) {
    json.begin_object()
        .field("prefix", std::string_view(below.prefix))
        .field("locks", below.locks)
        .field("holds", below.holds)
        .field("waits", below.waits)
        .end_object();
  }
  print(json.end_array().end_object().text() + "\n");
}

void print_table(const Opened& opened, const std::vector<Below>& prefixes) {
  const auto& [from, state, file_bytes] = opened;
  Table facts({"PROPERTY", "VALUE"});
  const auto add = [&](const char* what, std::string value) {
    facts.add({what, std::move(value)});
  };
  add("version", std::to_string(core::snapshot_format(state.version)));
  add("revision", std::to_string(state.revision.get()));
  add("cluster time", duration_cell(cluster_time_of(state)));
  add("locks", std::to_string(state.locks.locks().size()));
  add("holds", std::to_string(state.locks.holds().size()));
  add("waits", std::to_string(state.locks.waits().size()));
  add("leases", std::to_string(state.leases.all().size()));
  add("events", std::to_string(state.events.all().size()));
  add("bytes", std::to_string(file_bytes));
  add("cluster", std::to_string(from.cluster));
  add("member", std::to_string(from.member));
  add("log entry", std::to_string(from.index) + " of term " + std::to_string(from.term));
  add("saved at", utc(from.saved_at_ms));
  print(facts.text());
  if (prefixes.empty()) {
    return;
  }
  Table table({"PREFIX", "LOCKS", "HOLDS", "WAITS"});
  for (const auto& below : prefixes) {
    table.add({plain(below.prefix), std::to_string(below.locks), std::to_string(below.holds),
               std::to_string(below.waits)});
  }
  print("\n" + table.text());
}

/// Streams the state from the server to the file.
Result<void> download(Service& service, const Arguments& arguments, NewFile& file) {
  v1::SnapshotReadRequest request;
  request.set_stale(arguments.has("--stale"));
  // The header of the file needs the first response, so the writer is created with it.
  std::optional<core::SavedStateWriter> writer;
  const auto begin = [&](const v1::SnapshotPiece& head) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const core::SavedFrom from{.cluster = head.header().cluster_id(),
                               .member = head.header().member_id(),
                               .term = head.header().raft_term(),
                               .index = head.applied_index(),
                               .saved_at_ms = static_cast<std::uint64_t>(
                                   std::chrono::duration_cast<milliseconds>(now).count())};
    writer.emplace(from, head.bytes_total(), [&](std::string_view bytes) { file.add(bytes); });
  };
  auto asked =
      service.ask_each("Admin/SnapshotRead", request, [&](std::string_view answer) -> Result<void> {
        v1::SnapshotPiece piece;
        if (!piece.ParseFromArray(answer.data(), static_cast<int>(answer.size()))) {
          return fail(Errc::unavailable, "cannot parse the reply");
        }
        // The first response has no bytes, only the facts about the snapshot.
        if (!writer) {
          begin(piece);
          return {};
        }
        // End-to-end check, in addition to the checksums of the transport.
        if (core::crc32c(piece.bytes()) != piece.checksum()) {
          return fail(Errc::unavailable, "a chunk was corrupted in transit; retry");
        }
        writer->add(piece.bytes());
        return file.failure() ? Result<void>(std::unexpected(*file.failure())) : Result<void>();
      });
  if (!asked) {
    return asked;
  }
  // The stream has ended, and the state is shorter than the first response announced.
  if (!writer || !writer->finish()) {
    return fail(Errc::unavailable, "the snapshot is incomplete; retry");
  }
  return file.keep();
}

/// Saves the snapshot and reads it back, because a damaged backup must be detected before it is
/// needed.
Result<Opened> save(const Arguments& arguments, const std::string& path) {
  // A mistyped name must not replace an older backup.
  if (std::filesystem::exists(path) && !arguments.has("--force")) {
    return fail(Errc::invalid_argument, path + " exists; use --force to overwrite it");
  }
  const Signals signals;
  auto service = Service::open(arguments);
  if (!service) {
    return std::unexpected(std::move(service).error());
  }
  auto file = NewFile::create(path);
  if (!file) {
    return std::unexpected(std::move(file).error());
  }
  // After a signal the process exits at once, without destructors: the incomplete file is removed
  // here.
  const TerminationWatch termination(signals, [part = file->part()](int signal) {
    unlink(part.c_str());
    std::_Exit(code(ExitCode::signalled) + signal);
  });
  if (auto downloaded = download(*service, arguments, *file); !downloaded) {
    return std::unexpected(std::move(downloaded).error());
  }
  // Reads the file under its final name: this is what a restore will read.
  return open_saved(path);
}

}  // namespace

int save_snapshot(const Arguments& arguments) {
  const auto& path = arguments.words.front();
  const auto saved = save(arguments, path);
  if (!saved) {
    return failed(saved.error());
  }
  if (format_of(arguments) == Format::json) {
    print_json(*saved, {});
  } else if (format_of(arguments) == Format::table) {
    print(plain(path) + ": revision " + std::to_string(saved->state.revision.get()) + ", " +
          std::to_string(saved->state.locks.locks().size()) + " locks, " +
          std::to_string(saved->state.leases.all().size()) + " leases, " +
          grouped(saved->file_bytes) + " bytes\n");
  }
  return code(ExitCode::done);
}

int inspect_snapshot(const Arguments& arguments) {
  const auto most = arguments.number("--prefixes", prefixes_max);
  if (!most) {
    return failed(most.error());
  }
  const auto opened = open_saved(arguments.words.front());
  // Exit code 1, not a usage error: a monitor can check the backups with this command.
  if (!opened) {
    print_error(opened.error().detail);
    return code(ExitCode::no);
  }
  const auto prefixes = prefixes_of(opened->state, most->value_or(prefixes_default));
  if (format_of(arguments) == Format::json) {
    print_json(*opened, prefixes);
  } else if (format_of(arguments) == Format::table) {
    print_table(*opened, prefixes);
  }
  return code(ExitCode::done);
}

}  // namespace tenure::cli
