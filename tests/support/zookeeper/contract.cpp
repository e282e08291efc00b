#include "support/contract/contract.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "backends/zookeeper/backend.hpp"
#include "backends/zookeeper/nodes.hpp"
#include "backends/zookeeper/paths.hpp"
#include "support/zookeeper/server.hpp"

namespace tenure::test {
namespace {

namespace zookeeper = backends::zookeeper;

/// A chroot of its own on the server that all tests of this process share.
class ZookeeperService : public ContractService {
 public:
  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    constexpr std::chrono::seconds test_timeout{10};
    auto url = backends::parse_url(this->url()).value();
    return zookeeper::ZookeeperBackend::open(zookeeper::address_from(url, test_timeout).value(),
                                             test_timeout)
        .value();
  }
  /// Deletes the node of the holder, as an operator would with zkCli.
  bool force_release(const std::string& name) override {
    const auto folder = zookeeper::folder_of(chroot_, name);
    const auto queue = queue_of(folder);
    return !queue.empty() && shell_.remove(folder + '/' + queue.front().second);
  }
  [[nodiscard]] std::optional<std::size_t> waiters(const std::string& name) override {
    const auto queue = queue_of(zookeeper::folder_of(chroot_, name));
    std::size_t holding = 0;
    while (holding < queue.size() &&
           (holding == 0 || (!zookeeper::is_exclusive(queue[holding].first.kind) &&
                             !zookeeper::is_exclusive(queue.front().first.kind)))) {
      ++holding;
    }
    return queue.size() - holding;
  }
  [[nodiscard]] std::string url() const override { return servers_.url(chroot_); }

 private:
  std::vector<std::pair<zookeeper::Ticket, std::string>> queue_of(const std::string& folder) {
    std::vector<std::pair<zookeeper::Ticket, std::string>> queue;
    for (auto& node : shell_.list(folder)) {
      if (const auto ticket = zookeeper::ticket_of(node)) {
        queue.emplace_back(*ticket, std::move(node));
      }
    }
    std::ranges::sort(queue, [](const auto& a, const auto& b) {
      return zookeeper::precedes(a.first.sequence, b.first.sequence);
    });
    return queue;
  }

  ZookeeperServers& servers_ = ZookeeperServers::shared();
  std::string chroot_ = ZookeeperServers::fresh_chroot();
  ZookeeperShell shell_{servers_.hosts()};
};

}  // namespace

std::unique_ptr<ContractService> start_zookeeper_service() {
  return std::make_unique<ZookeeperService>();
}

}  // namespace tenure::test
