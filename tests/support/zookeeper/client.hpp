#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "backends/zookeeper/backend.hpp"
#include "client/factory.hpp"
#include "client/session.hpp"
#include "support/wait_until.hpp"
#include "support/zookeeper/server.hpp"

namespace tenure::test {

/// A client whose sessions the test can see.
struct SeenClient {
  backends::zookeeper::ZookeeperBackend* backend;
  Client client;

  [[nodiscard]] std::uint64_t requests() const {
    std::uint64_t sum = 0;
    for (const auto& one : backend->identities()) {
      sum += one.requests;
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t events() const {
    std::uint64_t sum = 0;
    for (const auto& one : backend->identities()) {
      sum += one.events;
    }
    return sum;
  }
};

[[nodiscard]] inline SeenClient seen_client(const std::string& url, ConnectOptions options = {}) {
  auto parsed = backends::parse_url(url).value();
  auto address = backends::zookeeper::address_from(parsed, test_timeout).value();
  auto opened =
      backends::zookeeper::ZookeeperBackend::open(std::move(address), test_timeout).value();
  auto* const backend = opened.get();
  return {.backend = backend,
          .client = detail::Factory::make<Client>(
              std::make_shared<detail::Session>(std::move(opened), std::move(options)))};
}

/// Fixture: a chroot of its own on the shared server, and a shell that inspects it.
class ZookeeperTest : public ::testing::Test {
 protected:
  [[nodiscard]] Client connect(ConnectOptions options = {.request_timeout = test_timeout}) {
    return tenure::connect(servers.url(chroot), std::move(options)).value();
  }
  /// Nodes in the folder of a lock.
  [[nodiscard]] std::vector<std::string> nodes(const std::string& name) {
    return shell.list(chroot + '/' + name);
  }
  /// Waits until the number of nodes is reached.
  [[nodiscard]] bool has_nodes(const std::string& name, std::size_t count) {
    return eventually([&] { return nodes(name).size() == count; });
  }
  [[nodiscard]] std::string path_of(const std::string& name) { return chroot + '/' + name; }

  ZookeeperServers& servers = ZookeeperServers::shared();
  std::string chroot = ZookeeperServers::fresh_chroot();
  ZookeeperShell shell{servers.hosts()};
};

}  // namespace tenure::test
