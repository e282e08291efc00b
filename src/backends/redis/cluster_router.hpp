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

#include "backends/redis/fan_out_query.hpp"
#include "backends/redis/router.hpp"
#include "backends/redis/server_connections.hpp"
#include "backends/redis/slots.hpp"

namespace tenure::backends::redis {

/// Router for Redis Cluster: sends each command to the node that owns the slot of its first key,
/// over connections to the nodes in use only.
///
/// Follows failovers and resharding: the slot table is queried from several nodes at the start,
/// after a lost connection, and after a redirect; the table with the highest epoch wins. A
/// redirected command is sent to the named node at most redirects_max times in a row, and is then
/// parked and retried with backoff.
class ClusterRouter final : public CommandRouter {
 public:
  /// `seeds`: endpoints of some cluster nodes, at least one. `server`: options for all nodes.
  /// `channel`: prefix of the channel names.
  ClusterRouter(boost::asio::io_context& loop, std::vector<Endpoint> seeds, ServerOptions server,
                std::string channel, Callbacks callbacks);
  ~ClusterRouter() override;

  void start() override;
  [[nodiscard]] bool is_ready() const override;
  [[nodiscard]] bool reaches(std::string_view key) const override;
  [[nodiscard]] bool is_idle() const override;
  void run(Command&& command) override;
  void flush() override;
  void stop(const Error& why) override;

  /// Redirects of a command that are followed without a delay. More of them mean that the nodes
  /// disagree, so the command is parked.
  static constexpr std::uint16_t redirects_max = 5;
  /// Nodes that are queried for the slot table at the same time.
  static constexpr std::size_t queried_servers_max = 6;

 private:
  /// Cluster node in use.
  struct Node {
    /// Id and endpoint of the node in the slot table.
    SlotTable::Owner owner;
    std::shared_ptr<ServerConnections> connections;
  };

  // Slot table.
  //
  /// Schedules refresh(), at most one per refresh_interval_min.
  void refresh_soon(std::chrono::milliseconds pause);
  /// Queries the slot table, unless a query is in progress.
  void refresh();
  /// Random choice of the known nodes and the seeds.
  [[nodiscard]] std::vector<ServerOptions> servers_to_query() const;
  /// Applies the newest table that a node reported.
  void query_done(const std::vector<Result<void>>& answers);
  /// Replaces the slot table, and retries the parked commands.
  void apply(SlotTable table);
  /// Disconnects from nodes that own no slots any more, and parks their unanswered commands.
  void retire_stale_nodes();
  /// Node that owns a slot, connected on first use; null: the slot has no owner.
  [[nodiscard]] ServerConnections* node_of(Slot slot);
  /// Node that owns a slot, if it is in use.
  [[nodiscard]] ServerConnections* find_node(Slot slot) const;
  /// Connects to a node.
  ServerConnections& make_node(const SlotTable::Owner& owner);

  // Events of the nodes.
  //
  /// A node is connected: reports its slots as ready.
  void ready(const SlotTable::Owner& owner);
  /// A connection was lost: the slots may have a new owner soon.
  void disconnected(const Error& why);
  /// Follows a redirect, or parks the command. `host`: of the node that replied with `words`.
  void redirected(Command command, std::string_view words, const std::string& host);
  /// Records the new owner of a slot (MOVED). False if that node is not in the table.
  bool apply_moved(const Redirection& redirection);
  /// Sends ASKING and the command to the node that imports the slot (ASK). The slot table keeps its
  /// owner until the migration is complete.
  void run_with_asking(Command command, const Redirection& redirection);
  /// Keeps the command for a retry after a delay that grows with the time since its first redirect.
  void park(Command command, std::string_view words);
  /// Retries all parked commands.
  void unpark();
  /// Filter for the keys of these slots.
  [[nodiscard]] KeyFilter keys_in_slots(std::function<bool(Slot)> slots) const;

  /// Event loop that runs all handlers.
  boost::asio::io_context& loop_;
  /// Endpoints of the URL; queried again if all known nodes are gone.
  const std::vector<Endpoint> seeds_;
  /// Options for the connections to all nodes.
  const ServerOptions server_;
  /// Prefix of the channel names.
  const std::string channel_;
  /// Callbacks of the owner.
  const Callbacks callbacks_;

  /// Slot table with the highest epoch so far; absent until the first query is done.
  std::optional<SlotTable> table_;
  /// Nodes in use.
  std::vector<Node> nodes_;
  /// Commands that wait for a retry.
  std::vector<Command> parked_;
  /// Timer of that retry.
  boost::asio::steady_timer park_timer_;
  /// The timer is running.
  bool is_park_timer_running_ = false;

  /// Query of the slot table in progress; null: none.
  std::shared_ptr<FanOutQuery> query_;
  /// Tables of that query by server.
  std::vector<std::optional<SlotTable>> reported_tables_;
  /// Timer of the next query.
  boost::asio::steady_timer refresh_timer_;
  /// Time of the next query, if one is scheduled.
  std::optional<std::chrono::steady_clock::time_point> refresh_at_;
  /// Time of the last query.
  std::chrono::steady_clock::time_point refreshed_at_{};
  /// A connection was lost since the last time all nodes were ready.
  bool was_disconnected_ = false;
  /// stop() was called.
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
