#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/ids.hpp"
#include "core/outcome.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// Registry of callbacks for waiting requests and for lost holds. A wait can have several waiters:
/// a client may retry with the same request id while its first call is still open. Not thread safe;
/// belongs to the store's thread.
class WaiterRegistry final : public Listener {
 public:
  /// Called once: at the end of the wait, or with `unavailable` when another leader decides it.
  using OnNotice = std::move_only_function<void(Result<core::Notice>, core::Revision)>;
  enum class Ticket : std::uint64_t {};
  /// Whether other waiters remain attached to the wait.
  enum class Remaining : std::uint8_t { some, none };

  [[nodiscard]] Ticket attach(RequestKey key, OnNotice notify);
  /// Removes the waiter without a call of `notify`. No effect if it was called already.
  Remaining detach(RequestKey key, Ticket ticket);
  /// Calls all waiters with `why`: their outcome is unknown. The waits stay in the store, so a
  /// retry at the next leader, or after a restart, keeps its queue position.
  void fail_all(const Error& why);

  /// Calls `lost` for every hold of the lease that ends without a release by its holder.
  using Lost = std::function<void(const core::Loss&)>;
  [[nodiscard]] Ticket subscribe(core::LeaseId lease, Lost lost);
  void unsubscribe(core::LeaseId lease, Ticket ticket);

  /// Number of attached waiters.
  [[nodiscard]] std::size_t attached() const;

  void applied(const core::Applied& what, const core::State& state) override;
  void role_changed(const LogPosition& log) override;

 private:
  /// Attached call.
  struct Waiter {
    Ticket ticket{};
    OnNotice notify;
  };

  /// Listener for losses of one lease.
  struct Subscriber {
    Ticket ticket{};
    Lost lost;
  };

  /// Calls all subscribers of the lease of this loss.
  void notify_subscribers(const core::Loss& loss);

  absl::flat_hash_map<RequestKey, std::vector<Waiter>> waits_;
  absl::flat_hash_map<std::uint64_t, std::vector<Subscriber>> leases_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace tenure::server
