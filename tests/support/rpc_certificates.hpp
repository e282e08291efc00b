#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "net/tls_context.hpp"
#include "support/raft_folder.hpp"

namespace tenure::test {

/// A certificate and its key, in two PEM files.
struct Certificate {
  std::filesystem::path file;
  std::filesystem::path key;
};

/// Signs certificates, in a folder of its own.
class Authority {
 public:
  struct Subject {
    std::string name = "server";
    /// Whom it is for, as OpenSSL writes it.
    std::string alternatives = "IP:127.0.0.1,DNS:localhost";
    /// Hours from now until it ends.
    int hours = 48;
  };

  Authority();
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// Its own certificate: who trusts this trusts all it signs.
  [[nodiscard]] const std::filesystem::path& file() const noexcept { return own_.file; }
  /// Another file of it for each name.
  [[nodiscard]] Certificate sign(const Subject& subject);
  /// What a server with that certificate needs.
  [[nodiscard]] static net::ServerTlsFiles server_files(const Certificate& certificate);
  /// The same, and its clients show a certificate of ours.
  [[nodiscard]] net::ServerTlsFiles mutual_files(const Certificate& certificate) const;
  [[nodiscard]] const TemporaryFolder& folder() const noexcept { return folder_; }

 private:
  struct Keys;

  TemporaryFolder folder_;
  std::unique_ptr<Keys> keys_;
  Certificate own_;
};

}  // namespace tenure::test
