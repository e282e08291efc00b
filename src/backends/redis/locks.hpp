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
#include "backends/redis/alarms.hpp"
#include "backends/redis/commands.hpp"
#include "backends/redis/pipeline.hpp"
#include "backends/redis/places.hpp"

namespace tenure::backends::redis {

/// What is asked of the locks on a server: leases, waits and what the server tells. Waiting costs
/// nothing: who is next is told, and only when nobody renews in time does the server have to be
/// asked. All on the loop's thread.
class Locks {
 public:
  Locks(boost::asio::io_context& loop, Pipeline& pipeline, Commands commands);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  [[nodiscard]] const Commands& commands() const noexcept { return commands_; }
  void listen(Listener* listener) noexcept { listener_ = listener; }

  void grant_lease(const LeaseRequest& request) { places_.add(request.id, request.ttl); }
  void renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void downgrade(const DowngradeRequest& request, Backend::Done<void> done);
  void holders(std::string_view name, Backend::Done<std::vector<Holder>> done);

  /// A message of the server's: a grant, or a hold that was taken away.
  void heard(std::string_view message);
  /// We may have missed one, or the server may have forgotten us.
  void ask_again();
  /// Ends all waits and gives back all that is held, as far as the server can be told.
  void end();

 private:
  using WaitKey = std::pair<std::uint64_t, std::uint64_t>;  ///< Lease and request.
  struct Wait {
    AcquireRequest request{};
    Spot spot{};
    Backend::Done<Granted> done{};
    std::size_t position = 0;
    bool is_queued = false;      ///< The server has said so.
    bool is_leaving = false;     ///< Called off; the server is asked what became of it.
    std::uint32_t attempts = 0;  ///< Of a barging one.
  };
  /// A lock that somebody here waits for.
  struct Watched {
    std::size_t waiting = 0;
    bool is_set = false;  ///< There is an alarm.
  };
  struct Renewal;

  [[nodiscard]] bool is_waited_for(LeaseId lease, const Spot& spot);
  void ask(const WaitKey& key);
  void acquire_answered(const WaitKey& key, const Result<Errand::Answer>& answer);
  void queued(Wait& wait, const Reply& reply);
  void barge_later(const WaitKey& key, Wait& wait, std::int64_t left_ms);
  void settle(const WaitKey& key, Result<Granted> answer);
  void look_in(const std::string& name, std::chrono::milliseconds time);
  void look(const std::string& name);
  void granted(std::string_view member, std::string_view rest);
  void taken(std::string_view member, std::string_view requests);
  void renew_part(const std::shared_ptr<Renewal>& renewal, const Ask& ask,
                  std::vector<std::pair<std::size_t, std::string>> members);
  void renewed_part(Renewal& renewal, const std::string& name,
                    const std::vector<std::pair<std::size_t, std::string>>& members,
                    const Result<Errand::Answer>& answer);

  Pipeline& pipeline_;
  const Commands commands_;
  Listener* listener_ = nullptr;
  Places places_;
  absl::flat_hash_map<WaitKey, Wait> waits_;
  absl::flat_hash_map<std::string, Watched> watched_;
  Alarms alarms_;
};

}  // namespace tenure::backends::redis
