#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/redis/fan_out_query.hpp"
#include "backends/redis/subscriber.hpp"

namespace tenure::backends::redis {

/// Finds the primary of a service through Redis Sentinels.
///
/// Queries all Sentinels concurrently and takes the endpoint that most of them report, so that a
/// dead, hung or partitioned Sentinel neither delays the result nor decides it. Subscribes to one
/// Sentinel (+switch-master), so that a failover is noticed when it happens and not when a
/// connection breaks. Runs on the loop's thread.
class SentinelResolver {
 public:
  /// Receives the endpoint of a new primary.
  using OnPrimaryChanged = std::function<void(const Endpoint&)>;

  /// `sentinels`: at least one.
  SentinelResolver(boost::asio::io_context& loop, std::vector<ServerOptions> sentinels,
                   std::string service);
  SentinelResolver(const SentinelResolver&) = delete;
  SentinelResolver& operator=(const SentinelResolver&) = delete;
  ~SentinelResolver();

  /// Subscribes to failover announcements.
  void start(OnPrimaryChanged on_primary_changed);
  /// Closes all connections. No callback is called any more.
  void stop();

  /// Looks up the primary. Fails with `unavailable` if no Sentinel replies, with `invalid_argument`
  /// if most reply and do not know the service, or with `permission_denied`.
  void resolve(OnResolved on_resolved);

 private:
  /// Queries all Sentinels, unless a query is in progress.
  void query();
  /// Completes the lookups that wait for the query.
  void query_done(const std::vector<Result<void>>& answers);
  /// Endpoint with the most votes; null: no Sentinel reported one.
  [[nodiscard]] const Endpoint* most_reported() const;
  /// Number of Sentinels that report an endpoint; a fresh announcement outvotes all of them.
  [[nodiscard]] std::size_t votes_for(const Endpoint& endpoint) const;
  /// More than half of all Sentinels report the same endpoint.
  [[nodiscard]] bool is_agreed() const;
  /// Error of a query without a result.
  [[nodiscard]] Error resolve_error(const std::vector<Result<void>>& answers) const;
  /// Records the primary, and reports a change.
  void set_primary(const Endpoint& endpoint);
  /// Subscribes to the announcements of the current Sentinel.
  void subscribe();
  /// Moves the subscription to the next Sentinel after a delay.
  void subscribe_to_next();
  /// Handles an announcement of a failover.
  void handle_switch_master(std::string_view message);

  /// Event loop that runs all handlers.
  boost::asio::io_context& loop_;
  /// Connection options of all Sentinels.
  const std::vector<ServerOptions> sentinels_;
  /// Name of the monitored service.
  const std::string service_;
  /// Callback of the owner.
  OnPrimaryChanged on_primary_changed_;
  /// Lookups that wait for the query in progress.
  std::vector<OnResolved> pending_;
  /// Query in progress; null: none.
  std::shared_ptr<FanOutQuery> query_;
  /// Endpoint that each Sentinel reported in this query.
  std::vector<std::optional<Endpoint>> reported_;
  /// Number of Sentinels that do not know the service.
  std::size_t service_unknown_count_ = 0;
  /// Last known primary.
  std::optional<Endpoint> primary_;
  /// Endpoint of the last +switch-master message.
  std::optional<Endpoint> announced_;
  /// Time of that message.
  std::chrono::steady_clock::time_point announced_at_{};
  /// Subscription to one Sentinel.
  std::unique_ptr<Subscriber> subscriber_;
  /// Index of that Sentinel.
  std::size_t subscribed_index_ = 0;
  /// Delay before the next Sentinel.
  boost::asio::steady_timer resubscribe_timer_;
  /// stop() was called.
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
