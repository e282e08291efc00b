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

#include "backends/redis/poll.hpp"
#include "backends/redis/waker.hpp"
#include "backends/redis/whereabouts.hpp"

namespace tenure::backends::redis {

/// Where the primary of a service is, by what Redis Sentinels say. All of them are asked at once,
/// so that one that is dead, hangs or was cut off with an old primary neither costs time nor
/// misleads; and one is listened to, so that a failover is heard of when it happens and not when
/// something breaks. All on the loop's thread.
class Sentinels final : public Whereabouts {
 public:
  /// `moved`: the primary is there now.
  using Moved = std::function<void(const Endpoint&)>;

  /// `sentinels`: at least one.
  Sentinels(boost::asio::io_context& loop, std::vector<Address> sentinels, std::string service);
  ~Sentinels() override;

  void start(Moved moved);
  void stop();

  /// `unavailable` if no Sentinel answers; `invalid_argument` if most do and none knows the
  /// service; `permission_denied`.
  void find(Found found) override;

 private:
  void ask();
  void answered(const std::vector<Result<void>>& answers);
  /// The one that most name; null if none was named.
  [[nodiscard]] const Endpoint* best() const;
  [[nodiscard]] std::size_t votes_for(const Endpoint& endpoint) const;
  [[nodiscard]] bool is_agreed() const;
  [[nodiscard]] Error nobody_knows(const std::vector<Result<void>>& answers) const;
  void decide(const Endpoint& endpoint);
  void listen();
  void listen_to_next();
  void heard(std::string_view message);

  boost::asio::io_context& loop_;
  const std::vector<Address> sentinels_;
  const std::string service_;
  Moved moved_;
  std::vector<Found> waiting_;  ///< For the poll that is under way.
  std::shared_ptr<Poll> poll_;
  std::vector<std::optional<Endpoint>> named_;  ///< By each of them, in this poll.
  std::size_t unknowing_ = 0;                   ///< Who answered that they know no such service.
  std::optional<Endpoint> last_;                ///< What was said last.
  std::optional<Endpoint> news_;                ///< By +switch-master,
  std::chrono::steady_clock::time_point news_at_{};
  std::unique_ptr<Waker> ear_;
  std::size_t listens_to_ = 0;
  boost::asio::steady_timer pause_;
  bool is_stopped_ = false;
};

}  // namespace tenure::backends::redis
