#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <boost/asio/io_context.hpp>

#include "backends/backend.hpp"
#include "backends/redis/carrier.hpp"
#include "backends/redis/commands.hpp"
#include "backends/redis/places.hpp"
#include "net/backoff.hpp"
#include "net/timer_queue.hpp"

namespace tenure::backends::redis {

/// What is asked of the locks on a server: leases, waits and what the server tells. Waiting costs
/// nothing: who is next is told, and only when nobody renews in time does the server have to be
/// asked. All on the loop's thread.
class Locks {
 public:
  Locks(boost::asio::io_context& loop, Carrier& carrier, Commands commands);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  [[nodiscard]] const Commands& commands() const noexcept { return commands_; }
  void listen(Listener* listener) noexcept { listener_ = listener; }

  void grant_lease(const LeaseRequest& request) { places_.add(request.id, request.ttl); }
  void renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done);
  void set_ttl(const TtlRequest& request, Backend::Done<void> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(ReleaseRequest request, Backend::Done<void> done);
  void downgrade(const DowngradeRequest& request, Backend::Done<void> done);
  void holders(std::string_view name, Backend::Done<std::vector<Holder>> done);

  /// A message of the wake channel: that a request may be granted, that a hold was taken away, or
  /// that it is time to look.
  void heard(std::string_view message);
  /// We may have missed one, or the server may have forgotten us.
  void ask_again(const Concerns& concerns = {});
  /// Other servers may have taken the place of those that granted what we hold: who holds no more
  /// is told.
  void check_holds();
  /// Ends all waits and gives back all that is held, as far as the server can be told.
  void end();

 private:
  struct Wait {
    AcquireRequest request{};
    Spot spot{};
    Backend::Done<Granted> done{};
    std::size_t position = 0;
    bool is_queued = false;   ///< The server has said so.
    bool is_asking = false;   ///< A question is on its way.
    bool is_woken = false;    ///< A message says that it is granted; the server has to confirm it.
    bool is_leaving = false;  ///< Called off; the server is asked what became of it.
    /// Its lease was renewed while the answer was out, so what the server gave it may end before we
    /// stop believing in it: it has to be renewed there, too, before it counts.
    bool is_behind = false;
    /// Granted; it counts when it is renewed, or when enough replicas have it.
    std::optional<Granted> unconfirmed{};
    /// Delays between the attempts to take a barging lock, whose release is not announced.
    net::Backoff backoff{
        {.min = std::chrono::milliseconds(2), .max = std::chrono::milliseconds(50)}};
  };
  /// A lock that somebody here waits for.
  struct Watched {
    std::size_t waiting = 0;
    std::optional<net::TimerQueue::Clock::time_point> alarm{};  ///< The next one.
  };
  struct Renewal;

  [[nodiscard]] bool is_waited_for(LeaseId lease, const Spot& spot);
  /// It holds nothing there.
  [[nodiscard]] bool is_only_a_wait(LeaseId lease, const Spot& spot);
  void ask(const RequestKey& key);
  void ask(const RequestKey& key, Wait& wait, std::chrono::milliseconds ttl);
  void acquire_answered(const RequestKey& key, const std::shared_ptr<const Ask>& ask,
                        const Result<Errand::Answer>& answer);
  void queued(Wait& wait, const Reply& reply);
  void barge_later(const RequestKey& key, Wait& wait, std::int64_t left_ms);
  using Waits = absl::flat_hash_map<RequestKey, Wait>;
  void settle(const RequestKey& key, Result<Granted> answer);
  void settle(Waits::iterator it, Result<Granted> answer);
  /// What the server says to one that was called off. `is_kept`: what was granted before stays.
  void left(const RequestKey& key, bool is_kept, const Result<Errand::Answer>& answer);
  /// Those of a lease whose answers are out: from now on it is believed in for longer.
  void leave_behind(const Places::Lease& lease, LeaseId id);
  /// What waits there was renewed.
  void caught_up(LeaseId lease, const Spot& spot);
  /// It is granted: settles it when the server counts what we believe, and enough replicas know.
  void confirm(Waits::iterator it, Granted granted);
  void confirmed(const RequestKey& key, const Result<Errand::Answer>& answer);
  /// Gives back what was granted too late, or does not count.
  void drop(const Wait& wait) { drop(wait.request, wait.spot.member); }
  void drop(const AcquireRequest& request, std::string_view member);
  /// Nobody waits for this answer any more.
  void drop_if_unwanted(const AcquireRequest& request, const Reply& reply);
  void look_in(std::string_view name, std::chrono::milliseconds time);
  void look(std::string_view name);
  void woken(std::string_view member, std::string_view rest);
  void ask_if_woken(const RequestKey& key);
  void wake_answered(const RequestKey& key, const Result<Errand::Answer>& answer);
  void confirm(Waits::iterator it, const Reply& reply);
  void taken(std::string_view member, std::string_view requests);
  using Members = std::vector<std::pair<std::size_t, std::string>>;  ///< Of which lease, by index.
  enum class Ttl : std::uint8_t { at_least, exact };
  void renew(std::vector<LeaseId> leases, Ttl ttl, Backend::Done<Renewed> done);
  void renew_part(const std::shared_ptr<Renewal>& renewal, const Ask& ask, std::uint32_t replicas,
                  Members members);
  void renewed_part(Renewal& renewal, const std::string& name, const Members& members,
                    const Result<Errand::Answer>& answer);

  Carrier& carrier_;
  const Commands commands_;
  Listener* listener_ = nullptr;
  Places places_;
  Waits waits_;
  absl::flat_hash_map<std::string, Watched> watched_;
  net::TimerQueue timers_;
};

}  // namespace tenure::backends::redis
