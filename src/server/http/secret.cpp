#include "server/http/secret.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tenure::server::http {
namespace {

// A secret of 256 bits has 64 hexadecimal digits; one that an operator chose may be shorter.
constexpr std::size_t bytes_min = 32;
constexpr std::size_t bytes_max = 256;

/// Text of errno.
std::unexpected<Error> system_failure_response(const std::string& what,
                                               const std::filesystem::path& path) {
  return fail(Errc::unavailable, what + ' ' + path.string() + ": " +
                                     std::error_code(errno, std::system_category()).message());
}

/// RAII file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return number_; }

 private:
  int number_;
};

/// Writes the secret under a temporary name, then renames it: after a crash the file is complete or
/// missing. The directory is synced last, else the rename could be lost.
Result<void> create(const std::filesystem::path& path) {
  auto temporary = path;
  temporary += ".new";
  // A crash may have left it.
  ::unlink(temporary.c_str());
  const auto text = auth::make_token() + '\n';
  {
    const Descriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) {
      return system_failure_response("cannot create", temporary);
    }
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::fsync(file.get()) != 0) {
      return system_failure_response("cannot write", temporary);
    }
  }
  const Descriptor folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (::rename(temporary.c_str(), path.c_str()) != 0 || folder.get() < 0 ||
      ::fsync(folder.get()) != 0) {
    return system_failure_response("cannot create", path);
  }
  return {};
}

Result<std::string> read(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO of this name must not block the server.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts{};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0) {
    return system_failure_response("cannot open", path);
  }
  // fstat of the open file, not of the path: the path could be replaced in between.
  if (!S_ISREG(facts.st_mode) || (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(Errc::invalid_argument,
                path.string() +
                    " must be a regular file with mode 0600: chmod 600, and replace "
                    "the secret if another user may have read it");
  }
  // Two bytes more than allowed, so that a file that is too long is detected, not truncated.
  std::array<char, bytes_max + 2> room{};
  const auto count = ::read(file.get(), room.data(), room.size());
  if (count < 0) {
    return system_failure_response("cannot read", path);
  }
  std::string text(room.data(), static_cast<std::size_t>(count));
  text.erase(text.find_last_not_of("\r\n") + 1);
  if (text.size() < bytes_min || text.size() > bytes_max) {
    return fail(Errc::invalid_argument,
                path.string() +
                    " must have one line of 32 to 256 bytes; remove the file, and the "
                    "server creates a new one at its next start");
  }
  return text;
}

}  // namespace

Result<auth::Digest> open_secret(const std::filesystem::path& folder) {
  const auto path = folder / secret_file;
  struct stat facts{};
  // lstat: a dangling symbolic link counts as an existing file and is rejected by read().
  if (::lstat(path.c_str(), &facts) != 0 && errno == ENOENT) {
    if (auto created = create(path); !created) {
      return std::unexpected(std::move(created).error());
    }
  }
  const auto text = read(path);
  if (!text) {
    return std::unexpected(text.error());
  }
  return auth::digest_of(*text);
}

}  // namespace tenure::server::http
