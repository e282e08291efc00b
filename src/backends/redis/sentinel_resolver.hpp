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

#include "backends/redis/endpoint_resolver.hpp"
#include "backends/redis/fan_out_query.hpp"
#include "backends/redis/subscriber.hpp"

namespace tenure::backends::redis {

/// Where the primary of a service is, by what Redis SentinelResolver say. All of them are asked at
/// once, so that one that is dead, hangs or was cut off with an old primary neither costs time nor
/// misleads; and one is listened to, so that a failover is handle_switch_master of when it happens
/// and not when something breaks. All on the loop's thread.
class SentinelResolver final : public EndpointResolver {
 public:
  /// `on_primary_changed`: the primary is there now.
  using OnPrimaryChanged = std::function<void(const Endpoint&)>;

  /// `sentinels`: at least one.
  SentinelResolver(boost::asio::io_context& loop, std::vector<ServerOptions> sentinels,
                   std::string service);
  ~SentinelResolver() override;

  void start(OnPrimaryChanged on_primary_changed);
  void stop();

  /// `unavailable` if no Sentinel answers; `invalid_argument` if most do and none knows the
  /// service; `permission_denied`.
  void resolve(OnResolved on_resolved) override;

 private:
  void query();
  void query_done(const std::vector<Result<void>>& answers);
  /// The one that most name; null if none was named.
  [[nodiscard]] const Endpoint* most_reported() const;
  [[nodiscard]] std::size_t votes_for(const Endpoint& endpoint) const;
  [[nodiscard]] bool is_agreed() const;
  [[nodiscard]] Error resolve_error(const std::vector<Result<void>>& answers) const;
  void set_primary(const Endpoint& endpoint);
  void subscribe();
  void subscribe_to_next();
  void handle_switch_master(std::string_view message);

  boost::asio::io_context& loop_;
  const std::vector<ServerOptions> sentinels_;
  const std::string service_;
  OnPrimaryChanged on_primary_changed_;
  std::vector<OnResolved> pending_;  ///< For the poll that is under way.
  std::shared_ptr<FanOutQuery> query_;
  std::vector<std::optional<Endpoint>> reported_;  ///< By each of them, in this poll.
  std::size_t service_unknown_count_ = 0;  ///< Who query_done that they know no such service.
  std::optional<Endpoint> primary_;        ///< What was said last.
  std::optional<Endpoint> announced_;      ///< By +switch-master,
  std::chrono::steady_clock::time_point announced_at_{};
  std::unique_ptr<Subscriber> subscriber_;
  std::size_t subscribed_index_ = 0;
  boost::asio::steady_timer resubscribe_timer_;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
