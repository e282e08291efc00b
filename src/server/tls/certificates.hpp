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

/// Contents of the files of [tls]; empty: TLS is not configured. `invalid_argument`: an unreadable
/// file.
[[nodiscard]] Result<std::optional<net::ServerTlsFiles>> read_tls_files(const Config::Tls& tls);

/// Earliest expiry of the certificates in a PEM text. `invalid_argument`: it contains none.
[[nodiscard]] Result<std::chrono::sys_seconds> first_expiry(std::string_view pem);

/// Hot reload of certificate files. Open connections keep their certificates; new ones use the
/// reloaded certificates. Thread safe.
///
/// Two phases: all groups are read and checked before the first is installed, so an invalid file
/// changes nothing.
class Certificates {
 public:
  /// Activates files that were read and checked.
  using Install = std::move_only_function<void()>;
  /// Called with the kind of a file and its earliest expiry.
  using Observe = std::function<void(std::string_view kind, std::chrono::sys_seconds expiry)>;

  struct File {
    std::string kind{};  ///< Label in metrics: server, client_ca, peer, peer_ca.
    std::filesystem::path path{};
  };
  /// Files that are replaced together, such as a certificate and the authority of its clients.
  struct Group {
    std::vector<File> files{};
    /// Reads and checks the files. Nothing changes before the returned function is called.
    std::function<Result<Install>()> prepare{};
  };

  explicit Certificates(Observe observe) : observe_(std::move(observe)) {}

  /// Adds files that are in use: observes their expiry and includes them in reload().
  /// reload() calls `group.prepare` on its own thread.
  void add(Group group);
  /// Reloads all files, or none if one is invalid, which is logged.
  Result<void> reload();
  [[nodiscard]] bool is_empty() const;

 private:
  void observe(const Group& group) const;

  const Observe observe_;
  mutable sys::Mutex mutex_;  ///< Guards: the groups; serialises reloads.
  std::vector<Group> groups_ TENURE_GUARDED_BY(mutex_);
};

/// Certificate files of [tls].
[[nodiscard]] std::vector<Certificates::File> files_of(const Config::Tls& tls);

}  // namespace tenure::server
