#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "net/tls_context.hpp"
#include "support/raft/folder.hpp"

namespace tenure::test {

/// Certificate and key in two PEM files.
struct Certificate {
  std::filesystem::path file;
  std::filesystem::path key;
};

/// Certificate authority with a temporary folder.
class Authority {
 public:
  struct Subject {
    std::string name = "server";
    /// Subject alternative names in OpenSSL syntax.
    std::string alternatives = "IP:127.0.0.1,DNS:localhost";
    /// Validity in hours from now; negative: expired.
    int hours = 48;
  };

  Authority();
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// Root certificate.
  [[nodiscard]] const std::filesystem::path& file() const noexcept { return own_.file; }
  /// Issues a certificate; each name has files of its own.
  [[nodiscard]] Certificate sign(const Subject& subject);
  /// TLS files of a server with this certificate.
  [[nodiscard]] static net::ServerTlsFiles server_files(const Certificate& certificate);
  /// TLS files of a server that requires client certificates of this authority.
  [[nodiscard]] net::ServerTlsFiles mutual_files(const Certificate& certificate) const;
  [[nodiscard]] const TemporaryFolder& folder() const noexcept { return folder_; }

 private:
  struct Keys;

  TemporaryFolder folder_;
  std::unique_ptr<Keys> keys_;
  Certificate own_;
};

}  // namespace tenure::test
