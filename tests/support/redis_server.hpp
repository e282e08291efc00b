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

/// A real redis-server on a free loopback port, with nothing in it; gone with the test. Throws, and
/// so fails the test, if it cannot be started.
class RedisServer {
 public:
  struct Options {
    std::vector<std::string> arguments{};  ///< More of redis-server's own.
    std::string password{};                ///< Of its default user, for our own questions.
    bool has_tls = false;    ///< Then `arguments` say so too; our questions are plain.
    std::string sentinel{};  ///< Not empty: it is a Sentinel, with these lines as its own.
    std::uint16_t port = 0;  ///< 0: any.
    std::uint16_t tls_port = 0;
    std::string
        cluster_nodes{};  ///< Not empty: it is a node of a cluster, whose nodes.conf this is.
  };

  RedisServer() : RedisServer(Options{}) {}
  explicit RedisServer(Options options);
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Where it speaks TLS, if it does.
  [[nodiscard]] std::uint16_t tls_port() const noexcept { return tls_port_; }
  /// "127.0.0.1:PORT"
  [[nodiscard]] std::string where() const { return "127.0.0.1:" + std::to_string(port_); }
  /// "redis://127.0.0.1:PORT" and this.
  [[nodiscard]] std::string url(std::string_view rest = "") const;

  /// Asks as an operator would; what it responds as text, arrays with a space between elements, nil
  /// as "(nil)". An error begins with "ERR" or its like.
  std::string command(const std::vector<std::string>& words);
  /// Listens to a channel from now on, so that what is published there is heard.
  void subscribe(const std::string& channel);
  /// The next message of those channels.
  [[nodiscard]] std::string next_message();
  void unsubscribe() { subscription_.reset(); }
  /// A number out of what INFO says, such as "total_commands_processed".
  [[nodiscard]] std::int64_t count_of(const std::string& field);

  /// Kills it without warning, or lets it be again, on the same port and with nothing in it.
  void kill();
  void start();
  /// Stops it as a debugger would.
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
