#pragma once

#include <memory>
#include <string>
#include <utility>

#include "server/config/config.hpp"
#include "server/raft/node.hpp"
#include "server/rpc/rpc_server.hpp"
#include "support/raft/folder.hpp"

namespace tenure::test {

/// In-process lock service with its log on disk. It can be stopped and restarted on the same port
/// and folder.
class RpcService {
 public:
  explicit RpcService(server::RpcOptions options = {},
                      const core::Limits& limits = server::Config{}.limits)
      : options_(std::move(options)), limits_(limits) {
    options_.address = "127.0.0.1:0";
    start();
  }
  ~RpcService() { stop(); }
  RpcService(const RpcService&) = delete;
  RpcService& operator=(const RpcService&) = delete;

  void start() {
    server::raft::NodeOptions options;
    options.folder = folder_.path();
    options.limits = limits_;
    node_ = server::raft::Node::open(std::move(options)).value();
    rpc_ = std::make_unique<server::RpcServer>(*node_, options_);
    node_->start();
    options_.address = "127.0.0.1:" + std::to_string(rpc_->start().value());
  }
  void stop() {
    if (rpc_) {
      rpc_->stop();
      node_->stop();
      rpc_.reset();
      node_.reset();
    }
  }

  [[nodiscard]] const std::string& address() const noexcept { return options_.address; }
  [[nodiscard]] std::string url(const std::string& options = {}) const {
    return "tenure://" + options_.address + options;
  }
  [[nodiscard]] server::raft::Node& node() noexcept { return *node_; }

 private:
  TemporaryFolder folder_;
  server::RpcOptions options_;
  core::Limits limits_;
  std::unique_ptr<server::raft::Node> node_;
  std::unique_ptr<server::RpcServer> rpc_;
};

}  // namespace tenure::test
