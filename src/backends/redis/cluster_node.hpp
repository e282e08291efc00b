#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "backends/redis/pipeline.hpp"
#include "backends/redis/replication_barrier.hpp"
#include "backends/redis/slots.hpp"
#include "backends/redis/subscriber.hpp"

namespace tenure::backends::redis {

/// One node of a cluster that we use: a connection that asks and one that listens, and a third
/// where replicas are waited for. All on the loop's thread.
class ClusterNode {
 public:
  struct Callbacks {
    std::function<void(const ClusterNode&)> ready;  ///< Both stand, perhaps again.
    std::function<void(const Error&)> disconnected;
    std::function<void()> idle;
    std::function<void(std::string)> warning;
    std::function<void(std::string_view)> message;
    std::function<void(Command, std::uint32_t replicas, std::string_view words, const ClusterNode&)>
        redirected;
  };

  /// `server`: of this node. `channel`: how the name of ours begins.
  ClusterNode(boost::asio::io_context& loop, SlotTable::Owner owner, ServerOptions server,
              const std::string& channel, Callbacks callbacks);

  void start();
  [[nodiscard]] const SlotTable::Owner& owner() const noexcept { return owner_; }
  [[nodiscard]] bool is_ready() const noexcept {
    return pipeline_->is_ready() && subscriber_.is_ready();
  }
  [[nodiscard]] bool is_connected() const noexcept { return pipeline_->is_ready(); }
  [[nodiscard]] bool is_idle() const;
  void run(Command&& command) { pipeline_->run(std::move(command)); }
  void run_replicated(Command command, std::uint32_t replicas);
  void flush() { pipeline_->flush(); }
  void stop(const Error& why);
  /// Does nothing any more; all that is open. The number of replicas is 0 where none are asked for.
  [[nodiscard]] std::vector<ReplicationBarrier::Entry> retire();

 private:
  void ready();

  boost::asio::io_context& loop_;
  const SlotTable::Owner owner_;
  const ServerOptions server_;
  const Callbacks callbacks_;
  std::shared_ptr<Pipeline> pipeline_;
  Subscriber subscriber_;
  std::unique_ptr<ReplicationBarrier> barrier_;  ///< From its first use.
};

}  // namespace tenure::backends::redis
