#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "backends/redis/pipeline.hpp"
#include "backends/redis/slots.hpp"
#include "backends/redis/waker.hpp"
#include "backends/redis/witness.hpp"

namespace tenure::backends::redis {

/// One node of a cluster that we use: a connection that asks and one that listens, and a third
/// where replicas are waited for. All on the loop's thread.
class Node {
 public:
  struct Calls {
    std::function<void(const Node&)> ready;  ///< Both stand, perhaps again.
    std::function<void(const Error&)> lost;
    std::function<void()> idle;
    std::function<void(std::string)> doubtful;
    std::function<void(std::string_view)> heard;
    std::function<void(Errand, std::uint32_t replicas, std::string_view words, const Node&)> astray;
  };

  /// `address`: of this node. `channel`: how the name of ours begins.
  Node(boost::asio::io_context& loop, SlotTable::Owner owner, Address address,
       const std::string& channel, Calls calls);

  void start();
  [[nodiscard]] const SlotTable::Owner& owner() const noexcept { return owner_; }
  [[nodiscard]] bool is_ready() const noexcept { return pipeline_->is_ready() && ear_.is_ready(); }
  [[nodiscard]] bool is_connected() const noexcept { return pipeline_->is_ready(); }
  [[nodiscard]] bool is_idle() const;
  void run(Errand&& errand) { pipeline_->run(std::move(errand)); }
  void run_replicated(Errand errand, std::uint32_t replicas);
  void flush() { pipeline_->flush(); }
  void stop(const Error& why);
  /// Does nothing any more; all that is open. The number of replicas is 0 where none are asked for.
  [[nodiscard]] std::vector<Witness::Case> retire();

 private:
  void ready();

  boost::asio::io_context& loop_;
  const SlotTable::Owner owner_;
  const Address address_;
  const Calls calls_;
  std::shared_ptr<Pipeline> pipeline_;
  Waker ear_;
  std::unique_ptr<Witness> witness_;  ///< From its first use.
};

}  // namespace tenure::backends::redis
