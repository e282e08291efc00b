#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/etcd/etcd.pb.h"
#include "support/process.hpp"

namespace tenure::test {

/// A real etcd on free loopback ports, with nothing in it; gone with the test. Throws, and so fails
/// the test, if it cannot be started.
class EtcdServer {
 public:
  struct Options {
    std::vector<std::string> arguments{};  ///< More of etcd's own.
    bool has_tls = false;                  ///< Then `arguments` have the certificates.
    bool starts = true;                    ///< Else start() does.
    std::string initial_cluster{};         ///< "name=peer,…"; empty: this one alone.
    std::string name = "one";
  };

  EtcdServer() : EtcdServer(Options{}) {}
  explicit EtcdServer(Options options);
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Where it speaks TLS, if it does.
  [[nodiscard]] std::uint16_t tls_port() const noexcept { return tls_port_; }
  /// "127.0.0.1:PORT"
  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::string peer_url() const;
  /// "etcd://127.0.0.1:PORT" and this.
  [[nodiscard]] std::string url(std::string_view rest = "") const;

  void set_initial_cluster(std::string members) { options_.initial_cluster = std::move(members); }
  /// Starts it, and does not wait.
  void launch();
  /// Waits until it serves; throws if it does not.
  void await();
  void start() {
    launch();
    await();
  }
  void kill();
  void pause() const { process_->pause(); }
  void resume() const { process_->resume(); }
  [[nodiscard]] bool is_healthy() const;

  /// Sets the credentials of all later requests of this object.
  void log_in(const std::string& user, const std::string& password);
  /// Asks its JSON interface; what it answers.
  [[nodiscard]] std::string ask(const std::string& path, const std::string& json) const;
  /// All keys that begin so, the oldest first.
  [[nodiscard]] backends::etcd::pb::RangeResponse keys(const std::string& prefix) const;
  void put(const std::string& key, const std::string& value) const;
  void remove(const std::string& key) const;
  void revoke(std::int64_t lease) const;
  /// Forgets all that was before the present revision.
  void compact() const;
  /// Is it the one that leads its cluster?
  [[nodiscard]] bool leads() const;

  /// A counter of its own, with its labels; the sum of all series that begin so.
  [[nodiscard]] std::int64_t count_of(std::string_view series) const;

  /// A command of etcdctl's, which has not ended yet.
  [[nodiscard]] std::unique_ptr<Process> begin_etcdctl(std::vector<std::string> words) const;
  /// One that has ended well.
  void etcdctl(std::vector<std::string> words) const;

 private:
  [[nodiscard]] std::string get(std::uint16_t port, const std::string& path) const;
  [[nodiscard]] std::vector<std::string> command() const;
  void take_ports();

  Options options_;
  ServerFolder folder_;
  std::uint16_t port_ = 0;
  std::uint16_t tls_port_ = 0;
  std::uint16_t peer_port_ = 0;
  std::uint16_t metrics_port_ = 0;
  std::string token_;
  std::optional<Process> process_;
};

/// One for all tests of this process that need nothing of it but that it is there: it takes longer
/// to start than they take.
[[nodiscard]] EtcdServer& shared_etcd();

}  // namespace tenure::test
