#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/redis/server.hpp"

namespace tenure::test {

/// Independent redis-servers.
class RedlockServers {
 public:
  explicit RedlockServers(std::size_t count = 5) {
    for (std::size_t n = 0; n < count; ++n) {
      servers_.push_back(std::make_unique<RedisServer>());
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  RedisServer& operator[](std::size_t server) { return *servers_[server]; }

  /// "redlock://127.0.0.1:PORT,…" followed by `rest`. The default options let the servers vote
  /// although they have just started.
  [[nodiscard]] std::string url(std::string_view rest = "?restart_wait=0s&node_timeout=3s") const {
    std::string text = "redlock://";
    for (const auto& server : servers_) {
      text += (server == servers_.front() ? "" : ",") + where(*server);
    }
    return text + std::string(rest);
  }
  [[nodiscard]] static std::string where(const RedisServer& server) {
    return "127.0.0.1:" + std::to_string(server.port());
  }

  /// Number of servers whose vote for this lock is taken.
  [[nodiscard]] std::size_t votes(const std::string& name) {
    std::size_t count = 0;
    for (const auto& server : servers_) {
      const auto head = server->command({"GET", "{tenure:" + name + "}"});
      const auto left = server->command({"PTTL", "{tenure:" + name + "}"});
      count += head.starts_with("R ") && std::stoll(left) > 60'000 ? 1 : 0;
    }
    return count;
  }
  /// Member that has the vote of one server; "": none.
  [[nodiscard]] std::string vote_of(std::size_t server, const std::string& name) {
    const auto head = servers_[server]->command({"GET", "{tenure:" + name + "}"});
    return head.starts_with("R ") ? head.substr(2, head.find(' ', 2) - 2) : "";
  }

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

}  // namespace tenure::test
