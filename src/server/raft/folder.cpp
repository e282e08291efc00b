#include "server/raft/folder.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/file.h>

namespace tenure::server::raft {
namespace {

constexpr std::string_view lock_name = "LOCK";
constexpr std::string_view identity_name = "identity";

std::string hexadecimal(std::uint64_t value) {
  std::string text(17, '\0');
  text.resize(
      static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%016" PRIx64, value)));
  return text;
}

// 63 bits, because TOML has no larger integers and node.cluster_id must accept it.
std::uint64_t random_number() {
  std::random_device device;
  std::uint64_t value = 0;
  while (value == 0) {
    value = ((std::uint64_t{device()} << 32) | device()) >> 1;
  }
  return value;
}

Result<File> lock_folder(const std::filesystem::path& path) {
  auto file = File::open(path / lock_name, File::Mode::change);
  if (!file) {
    return file;
  }
  // The kernel releases the lock when the process ends, also after a crash.
  if (::flock(file->descriptor(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return system_failure("cannot lock", file->path());
    }
    return fail(Errc::would_block,
                "the folder " + path.string() + " is in use: another process holds " +
                    file->path().string() + ". Two servers cannot share a folder.");
  }
  return file;
}

// Whether a directory without an identity must not contain this name, because a foreign program may
// have written it.
bool is_strange(const std::filesystem::path& name) {
  return name != lock_name && name != "lost+found" && name != std::string(identity_name) + ".new";
}

Result<void> check_ours(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path / identity_name, error)) {
    return {};
  }
  std::filesystem::directory_iterator all(path, error);
  if (error) {
    return fail(Errc::unavailable,
                "cannot read the folder " + path.string() + ": " + error.message());
  }
  for (const auto& entry : all) {
    if (is_strange(entry.path().filename())) {
      return fail(Errc::invalid_argument,
                  "the folder " + path.string() +
                      " is not empty and has no identity file (there is " +
                      entry.path().filename().string() +
                      "): it is not a data directory of tenured. Name an empty one.");
    }
  }
  return {};
}

}  // namespace

Result<Folder> Folder::open(const std::filesystem::path& path, ExpectedIdentity expected,
                            Origin origin) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(path, error);
  if (is_new && !error) {
    // Only the owner: metadata of locks may be confidential.
    std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  }
  if (error) {
    return fail(Errc::unavailable,
                "cannot create the folder " + path.string() + ": " + error.message());
  }
  // Checked first: a foreign directory stays untouched, without even a lock file.
  if (auto ours = check_ours(path); !ours) {
    return std::unexpected(std::move(ours).error());
  }
  auto lock = lock_folder(path);
  if (!lock) {
    return std::unexpected(std::move(lock).error());
  }
  Folder folder(path, std::move(*lock));
  auto known = std::filesystem::exists(path / identity_name) ? folder.read_identity(expected)
                                                             : folder.begin(expected, origin);
  if (!known) {
    return std::unexpected(std::move(known).error());
  }
  return folder;
}

Result<void> Folder::read_identity(ExpectedIdentity expected) {
  const auto name = path_ / identity_name;
  const auto file = File::open(name, File::Mode::read);
  const auto text = file ? file->read_all() : Result<std::string>(std::unexpected(file.error()));
  if (!text) {
    return std::unexpected(text.error());
  }
  unsigned version = 0;
  std::uint64_t cluster = 0;
  std::uint64_t member = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t origin = 0;
  // Found 3 fields: a file of an earlier version, without incarnation and origin.
  const int found = std::sscanf(text->c_str(),
                                "tenure %u cluster %" SCNx64 " member %" SCNu64
                                " incarnation %" SCNx64 " origin %" SCNx64,
                                &version, &cluster, &member, &incarnation, &origin);
  if (found >= 1 && version != 1) {
    return fail(Errc::invalid_argument, "the folder " + path_.string() + " has format " +
                                            std::to_string(version) +
                                            "; this program supports format 1");
  }
  const bool is_early = found == 3 && !text->contains("incarnation");
  if ((found != 5 && !is_early) || cluster == 0 || member == 0) {
    return fail(Errc::invalid_argument, "the file " + name.string() +
                                            " is not a valid identity; restore it from a "
                                            "backup");
  }
  cluster_ = ClusterId{cluster};
  member_ = MemberId{member};
  incarnation_ = Incarnation{incarnation};
  origin_ = Origin{origin};
  if (expected.cluster != ClusterId{} && expected.cluster != cluster_) {
    return fail(Errc::invalid_argument, "the folder " + path_.string() + " belongs to cluster " +
                                            std::to_string(cluster) +
                                            ", and the configuration requires cluster " +
                                            std::to_string(expected.cluster.get()));
  }
  if (expected.member != MemberId{} && expected.member != member_) {
    return fail(Errc::invalid_argument, "the folder " + path_.string() + " belongs to member " +
                                            std::to_string(member) +
                                            ", and the configuration requires member " +
                                            std::to_string(expected.member.get()));
  }
  if (incarnation_ == Incarnation{}) {
    incarnation_ = Incarnation{random_number()};
    return write_identity();
  }
  return {};
}

Result<void> Folder::begin(ExpectedIdentity expected, Origin origin) {
  cluster_ = expected.cluster == ClusterId{} ? ClusterId{random_number()} : expected.cluster;
  member_ = expected.member == MemberId{} ? MemberId{1} : expected.member;
  incarnation_ = Incarnation{random_number()};
  origin_ = origin;
  return write_identity();
}

Result<void> Folder::write_identity() {
  return replace_file(path_ / identity_name, "tenure 1\ncluster " + hexadecimal(cluster_.get()) +
                                                 "\nmember " + std::to_string(member_.get()) +
                                                 "\nincarnation " +
                                                 hexadecimal(incarnation_.get()) + "\norigin " +
                                                 hexadecimal(origin_.get()) + "\n");
}

}  // namespace tenure::server::raft
