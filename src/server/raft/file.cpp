#include "server/raft/file.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tenure::server::raft {
namespace {

// Upper bound for the dirty bytes of a large file: an fdatasync of the log waits for them in the
// disk queue.
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

int flags_of(File::Mode mode) {
  // O_CLOEXEC: a child process must not inherit the lock of the data directory.
  switch (mode) {
    case File::Mode::read: return O_RDONLY | O_CLOEXEC;
    case File::Mode::change: return O_RDWR | O_CREAT | O_CLOEXEC;
    case File::Mode::create: return O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
  }
  return O_RDONLY | O_CLOEXEC;
}

}  // namespace

std::unexpected<Error> system_failure(const std::string& what, const std::filesystem::path& path) {
  // First, because building the text may change errno.
  const int number = errno;
  const bool is_full = number == ENOSPC || number == EDQUOT;
  return fail(is_full ? Errc::resource_exhausted : Errc::unavailable,
              what + " " + path.string() + ": " + std::generic_category().message(number));
}

Result<File> File::open(const std::filesystem::path& path, Mode mode) {
  const int descriptor = ::open(path.c_str(), flags_of(mode), 0600);
  if (descriptor < 0) {
    return system_failure("cannot open", path);
  }
  return File(path, descriptor);
}

File& File::operator=(File&& other) noexcept {
  close();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  return *this;
}

Result<void> File::write_at(std::size_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno != EINTR) {
      return system_failure("cannot write", path_);
    }
    // EINTR counts as a write of no bytes; a short write continues behind its end.
    const auto count = written < 0 ? 0 : static_cast<std::size_t>(written);
    bytes.remove_prefix(count);
    offset += count;
  }
  return {};
}

Result<void> File::write_back(std::size_t offset, std::size_t bytes) {
  const int failed = ::sync_file_range(
      descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  // Without support of the system, sync_content() does all the work. Any other error has to be
  // reported here: the kernel reports a writeback error once per descriptor, so the later fsync
  // would succeed.
  if (failed != 0 && errno != ENOSYS && errno != EINVAL && errno != ESPIPE) {
    return system_failure("cannot write", path_);
  }
  return {};
}

Result<void> File::read_at(std::size_t offset, std::span<char> room) const {
  while (!room.empty()) {
    const auto count = ::pread(descriptor_, room.data(), room.size(), static_cast<off_t>(offset));
    if (count == 0) {
      return fail(Errc::unavailable, "cannot read " + path_.string() + ": unexpected end of file");
    }
    if (count < 0 && errno != EINTR) {
      return system_failure("cannot read", path_);
    }
    const auto step = count < 0 ? 0 : static_cast<std::size_t>(count);
    room = room.subspan(step);
    offset += step;
  }
  return {};
}

bool File::enable_direct_io() noexcept {
  const int flags = ::fcntl(descriptor_, F_GETFL);
  if (flags < 0 || ::fcntl(descriptor_, F_SETFL, flags | O_DIRECT) != 0) {
    return false;
  }
  // Drops the cached pages now. A direct write would otherwise invalidate them one by one.
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  return true;
}

Result<std::string> File::read_all() const {
  struct stat status{};
  if (::fstat(descriptor_, &status) != 0) {
    return system_failure("cannot stat", path_);
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto count =
        ::pread(descriptor_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (count < 0 && errno != EINTR) {
      return system_failure("cannot read", path_);
    }
    if (count == 0) {
      break;
    }
    at += count < 0 ? 0 : static_cast<std::size_t>(count);
  }
  bytes.resize(at);
  return bytes;
}

Result<void> File::sync_content() {
  if (::fdatasync(descriptor_) != 0) {
    return system_failure("cannot sync", path_);
  }
  return {};
}

void File::close() noexcept {
  if (descriptor_ >= 0) {
    ::close(std::exchange(descriptor_, -1));
  }
}

Result<void> sync_folder(const std::filesystem::path& folder) {
  auto opened = File::open(folder, File::Mode::read);
  if (!opened) {
    return std::unexpected(std::move(opened).error());
  }
  if (::fsync(opened->descriptor()) != 0) {
    return system_failure("cannot sync", folder);
  }
  return {};
}

Result<void> rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return system_failure("cannot rename", from);
  }
  return sync_folder(to.parent_path());
}

Result<void> replace_file(const std::filesystem::path& path, std::string_view begin,
                          std::string_view rest) {
  auto temporary = path;
  temporary += ".new";
  auto file = File::open(temporary, File::Mode::create);
  if (!file) {
    return std::unexpected(std::move(file).error());
  }
  auto done = file->write_at(0, begin);
  for (std::size_t at = 0; done && at < rest.size(); at += piece_bytes) {
    const auto piece = rest.substr(at, piece_bytes);
    done = file->write_at(begin.size() + at, piece);
    if (done) {
      done = file->write_back(begin.size() + at, piece.size());
    }
  }
  if (done) {
    done = file->sync_content();
  }
  if (done) {
    done = rename_durably(temporary, path);
  }
  // A leftover file would occupy the space whose lack may be the error.
  if (!done) {
    ::unlink(temporary.c_str());
  }
  return done;
}

}  // namespace tenure::server::raft
