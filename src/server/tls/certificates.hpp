#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenure/error.hpp>

#include "net/tls_context.hpp"
#include "server/config/config.hpp"
#include "sys/mutex.hpp"

namespace tenure::server {

/// The files of [tls]; nothing if there are none. `invalid_argument`: which cannot be read.
[[nodiscard]] Result<std::optional<net::ServerTlsFiles>> read_tls_files(const Config::Tls& tls);

/// When the first certificate of a PEM text expires. `invalid_argument`: it has none.
[[nodiscard]] Result<std::chrono::sys_seconds> first_expiry(std::string_view pem);

/// The certificate files of a process, read again while it runs. Connections that are open stay as
/// they are; new ones use the new certificates. Thread safe.
class Certificates {
 public:
  /// Puts files that were read and checked into use.
  using Install = std::move_only_function<void()>;
  /// Is called with the kind of a file and with its first expiry.
  using Observe = std::function<void(std::string_view kind, std::chrono::sys_seconds expiry)>;

  struct File {
    std::string kind{};  ///< Its label in metrics: server, client_ca, peer, peer_ca.
    std::filesystem::path path{};
  };
  /// Files that belong together, such as a certificate and the authority of its clients.
  struct Group {
    std::vector<File> files{};
    /// Reads and checks the files; changes nothing before the result is called.
    std::function<Result<Install>()> prepare{};
  };

  explicit Certificates(Observe observe) : observe_(std::move(observe)) {}

  /// The files are in use already: their expiry is observed, and reload() reads them again.
  void add(Group group);
  /// Reads all files again and puts them into use, or none if one is wrong; the log says which.
  Result<void> reload();
  [[nodiscard]] bool is_empty() const;

 private:
  void observe(const Group& group) const;

  const Observe observe_;
  mutable sys::Mutex mutex_;  ///< Guards: the groups, and serializes reloads.
  std::vector<Group> groups_ TENURE_GUARDED_BY(mutex_);
};

/// The files with certificates of [tls].
[[nodiscard]] std::vector<Certificates::File> files_of(const Config::Tls& tls);

}  // namespace tenure::server
