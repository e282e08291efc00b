#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.hpp"

struct _zhandle;

namespace tenure::test {

/// Real ZooKeeper servers on free loopback ports, with their files in a folder that is gone with
/// the test. A server is a JVM that takes a second to start: tests that do not break it share one,
/// each below a chroot of its own. Throws, and so fails the test, if it cannot be started.
class ZookeeperServers {
 public:
  struct Options {
    std::size_t count = 1;
    /// Tick time in ms. Session timeouts are 2 to 20 ticks unless `config` overrides them.
    int tick = 200;
    std::vector<std::string> config{};  ///< More lines of zoo.cfg.
  };

  ZookeeperServers() : ZookeeperServers(Options{}) {}
  explicit ZookeeperServers(Options options);
  ~ZookeeperServers();
  ZookeeperServers(const ZookeeperServers&) = delete;
  ZookeeperServers& operator=(const ZookeeperServers&) = delete;

  /// The one that all tests of this process share: one server, any timeout from 400 ms.
  static ZookeeperServers& shared();
  /// An unused chroot: "/t7".
  static std::string fresh_chroot();

  /// "zookeeper://127.0.0.1:PORT,…" and this.
  [[nodiscard]] std::string url(std::string_view rest = "") const;
  [[nodiscard]] std::string hosts() const;
  [[nodiscard]] std::uint16_t port(std::size_t which = 0) const { return ports_[which]; }
  [[nodiscard]] std::size_t size() const noexcept { return ports_.size(); }

  /// Kills it without warning.
  void kill(std::size_t which = 0);
  /// Stops it as a debugger would.
  void pause(std::size_t which = 0) const { processes_[which]->pause(); }
  void resume(std::size_t which = 0) const { processes_[which]->resume(); }
  /// Index of the leader. REQUIRES: all servers respond.
  [[nodiscard]] std::size_t leader() const;
  /// Reply of a server to a four-letter command such as "srvr".
  [[nodiscard]] std::string ask(std::string_view letters, std::size_t which = 0) const;
  /// A number from the reply to `srvr`, such as "Received".
  [[nodiscard]] std::int64_t count_of(std::string_view field, std::size_t which = 0) const;

 private:
  void configure(std::size_t which);

  const Options options_;
  ServerFolder folder_;
  std::vector<std::uint16_t> ports_;
  std::vector<std::string> members_;
  std::vector<std::unique_ptr<Process>> processes_;
};

/// Session on the C client without Tenure, like that of an operator or of another library. Calls
/// wait, and throw if they fail.
class ZookeeperShell {
 public:
  struct Options {
    int timeout_ms = 30'000;
    std::string identity{};  ///< "user:password"
  };

  explicit ZookeeperShell(const std::string& hosts) : ZookeeperShell(hosts, Options{}) {}
  ZookeeperShell(const std::string& hosts, const Options& options);
  ~ZookeeperShell();
  ZookeeperShell(const ZookeeperShell&) = delete;
  ZookeeperShell& operator=(const ZookeeperShell&) = delete;

  /// Closes the session of another client, which requires its id and password.
  static void close_session(const std::string& hosts, std::int64_t session,
                            const std::string& password);

  /// Makes a node that is there to stay, and all above it.
  void make(const std::string& path);
  /// As the recipes do it; the name that it got. "folder/prefix"
  [[nodiscard]] std::string make_ticket(const std::string& path, std::string_view value = "");
  /// An ephemeral node of exactly this name.
  void make_ephemeral(const std::string& path);
  void set(const std::string& path, std::string_view value);
  /// May only be used by this user from now on.
  void close_to_others(const std::string& path);
  /// False: it is not there.
  bool remove(const std::string& path);
  [[nodiscard]] bool has(const std::string& path);
  [[nodiscard]] std::string get(const std::string& path);
  /// Whose session it ends with.
  [[nodiscard]] std::int64_t owner_of(const std::string& path);
  [[nodiscard]] std::int64_t czxid_of(const std::string& path);
  /// Sorted by name; none if it is not there.
  [[nodiscard]] std::vector<std::string> list(const std::string& path);

 private:
  _zhandle* handle_ = nullptr;
};

}  // namespace tenure::test
