#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.hpp"

struct redisContext;

namespace tenure::test {

/// Real redis-server on a free loopback port, empty at the start, and ended with the test. Throws,
/// and so fails the test, if it cannot be started.
class RedisServer {
 public:
  struct Options {
    /// Additional arguments of redis-server.
    std::vector<std::string> arguments{};
    /// Password of the default user, used by command().
    std::string password{};
    /// The server has a TLS port; `arguments` contain the certificates. command() does not use TLS.
    bool has_tls = false;
    /// Configuration lines; not empty: the server is a Sentinel.
    std::string sentinel{};
    /// Port; 0: any.
    std::uint16_t port = 0;
    std::uint16_t tls_port = 0;
    /// Content of nodes.conf; not empty: the server is a cluster node.
    std::string cluster_nodes{};
  };

  RedisServer() : RedisServer(Options{}) {}
  explicit RedisServer(Options options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// TLS port; 0: none.
  [[nodiscard]] std::uint16_t tls_port() const noexcept { return tls_port_; }
  /// "127.0.0.1:PORT"
  [[nodiscard]] std::string where() const { return "127.0.0.1:" + std::to_string(port_); }
  /// "redis://127.0.0.1:PORT" followed by `rest`.
  [[nodiscard]] std::string url(std::string_view rest = "") const;

  /// Runs a command and returns its reply as text: array elements separated by spaces, nil as
  /// "(nil)", an error as its text.
  std::string command(const std::vector<std::string>& words);
  /// Subscribes to a channel.
  void subscribe(const std::string& channel);
  /// Waits for the next published message.
  [[nodiscard]] std::string next_message();
  void unsubscribe() { subscription_.reset(); }
  /// Number in a field of INFO, such as "total_commands_processed".
  [[nodiscard]] std::int64_t count_of(const std::string& field);

  /// Kills the server (SIGKILL), or starts it again on the same port, empty.
  void kill();
  void start();
  /// Suspends the process (SIGSTOP), or resumes it.
  void pause() const { process_->pause(); }
  void resume() const { process_->resume(); }

 private:
  struct Close {
    void operator()(redisContext* context) const;
  };
  [[nodiscard]] bool responds();
  [[nodiscard]] std::vector<std::string> command_line() const;

  Options options_;
  ServerFolder folder_;
  std::uint16_t port_ = 0;
  std::uint16_t tls_port_ = 0;
  std::optional<Process> process_;
  std::unique_ptr<redisContext, Close> connection_;
  std::unique_ptr<redisContext, Close> subscription_;
};

}  // namespace tenure::test
