#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/redis/cluster_node.hpp"
#include "backends/redis/fan_out_query.hpp"
#include "backends/redis/router.hpp"
#include "backends/redis/slots.hpp"

namespace tenure::backends::redis {

/// A Redis Cluster: each command goes to the node that has the slot of its key, over connections to
/// those nodes only that are used. Follows failovers and resharding: by what nodes say of each
/// other, asked at the beginning, when one is disconnected, and when one sends us elsewhere.
class ClusterRouter final : public CommandRouter {
 public:
  /// `seeds`: any members, at least one; all else in `server` is for all of them. `channel`: each
  /// node has one of its own, which begins so.
  ClusterRouter(boost::asio::io_context& loop, std::vector<Endpoint> seeds, ServerOptions server,
                std::string channel, Callbacks callbacks);
  ~ClusterRouter() override;

  void start() override;
  [[nodiscard]] bool is_ready() const override;
  [[nodiscard]] bool reaches(std::string_view key) const override;
  [[nodiscard]] bool is_idle() const override;
  void run(Command&& command) override;
  void run_replicated(Command command, std::uint32_t replicas) override;
  void flush() override;
  void stop(const Error& why) override;

  /// How often an command may be sent elsewhere at once; then it waits for better times.
  static constexpr std::uint16_t redirects_max = 5;
  /// How many members are asked about the others.
  static constexpr std::size_t queried_servers_max = 6;

 private:
  /// What nobody takes at the moment.
  struct Parked {
    Command command{};
    std::uint32_t replicas = 0;
  };

  // Where things are.
  void refresh_soon(std::chrono::milliseconds pause);
  void refresh();
  [[nodiscard]] std::vector<ServerOptions> servers_to_query() const;
  void query_done(const std::vector<Result<void>>& answers);
  void apply(SlotTable table);
  void retire_stale_nodes();
  /// The node of this slot, made if need be; null: nobody has it.
  [[nodiscard]] ClusterNode* node_of(Slot slot);
  [[nodiscard]] ClusterNode* find_node(Slot slot) const;
  ClusterNode& make_node(const SlotTable::Owner& owner);

  // What nodes say.
  void ready(const ClusterNode& node);
  void disconnected(const Error& why);
  void redirected(Command command, std::uint32_t replicas, std::string_view words,
                  const ClusterNode& node);
  /// False if we do not know that node yet.
  bool apply_moved(const Redirection& redirection);
  void run_with_asking(Command command, const Redirection& redirection);
  void park(Command command, std::uint32_t replicas, std::string_view words);
  void unpark();
  void route(Parked parked);
  [[nodiscard]] KeyFilter keys_in_slots(std::function<bool(Slot)> slots) const;

  boost::asio::io_context& loop_;
  const std::vector<Endpoint> seeds_;
  const ServerOptions server_;
  const std::string channel_;
  const Callbacks callbacks_;

  std::optional<SlotTable> table_;
  std::vector<std::shared_ptr<ClusterNode>> nodes_;  ///< Those that are used.
  std::vector<Parked> parked_;
  boost::asio::steady_timer park_timer_;
  bool is_park_timer_running_ = false;

  std::shared_ptr<FanOutQuery> query_;
  std::vector<std::optional<SlotTable>> reported_tables_;  ///< Of the poll that is under way.
  boost::asio::steady_timer refresh_timer_;
  std::optional<std::chrono::steady_clock::time_point> refresh_at_;
  std::chrono::steady_clock::time_point refreshed_at_{};
  bool was_disconnected_ = false;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
