#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <variant>

#include "backends/cluster/cluster_backend.hpp"
#include "server/config.hpp"
#include "server/raft/node.hpp"
#include "server/rpc/rpc_server.hpp"
#include "support/contract.hpp"
#include "support/raft_folder.hpp"

namespace tenure::test {
namespace {

class TenureService : public ContractService {
 public:
  TenureService()
      : node_(
            server::raft::Node::open({.folder = folder_.path(), .limits = server::Config{}.limits})
                .value()),
        rpc_(*node_, {.address = "127.0.0.1:0"}) {
    node_->start();
    port_ = static_cast<std::uint16_t>(rpc_.start().value());
  }
  ~TenureService() override {
    rpc_.stop();
    node_->stop();
  }

  [[nodiscard]] std::unique_ptr<backends::Backend> open() override {
    using backends::cluster::ClusterBackend;
    return ClusterBackend::open({.endpoints = {{.host = "127.0.0.1", .port = port_}}}, "contract",
                                std::chrono::seconds(5))
        .value();
  }
  bool force_release(const std::string& name) override {
    std::promise<bool> done;
    node_->propose(core::ForceRelease{.place = {.name = name}},
                   [&](const Result<server::Decided>& decided) {
                     const auto* forced = std::get_if<core::Forced>(&decided.value().outcome);
                     done.set_value(forced != nullptr && forced->holds > 0);
                   });
    return done.get_future().get();
  }
  [[nodiscard]] std::string url() const override {
    return "tenure://127.0.0.1:" + std::to_string(port_);
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<server::raft::Node> node_;
  server::RpcServer rpc_;
  std::uint16_t port_ = 0;
};

}  // namespace

std::unique_ptr<ContractService> start_tenure_service() {
  return std::make_unique<TenureService>();
}

}  // namespace tenure::test
