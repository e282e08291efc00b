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

/// Who is to be told when a wait ends or a hold is lost. Several callers may be attached to one
/// wait: a client that asks again with the same request id while its first call still stands. For
/// the store's thread only.
class WaiterRegistry final : public Listener {
 public:
  /// Called once, at the end of the wait; or with `unavailable` when somebody else will know of it.
  using OnNotice = std::move_only_function<void(Result<core::Notice>, core::Revision)>;
  enum class Ticket : std::uint64_t {};
  /// Was that the last caller of the wait?
  enum class Remaining : std::uint8_t { some, none };

  [[nodiscard]] Ticket attach(RequestKey key, OnNotice notify);
  /// Takes it back: `notify` is destroyed and not called any more. Nothing happens if it was
  /// called.
  Remaining detach(RequestKey key, Ticket ticket);
  /// Everybody is told that the outcome is unknown, and why. The waits themselves stay in the
  /// store, so that a retry at the next leader, or after the restart, finds its place.
  void fail_all(const Error& why);

  /// Calls `lost` for every hold of the lease that ends without its holder's doing.
  using Lost = std::function<void(const core::Loss&)>;
  [[nodiscard]] Ticket subscribe(core::LeaseId lease, Lost lost);
  void unsubscribe(core::LeaseId lease, Ticket ticket);

  /// How many are to be told of waits.
  [[nodiscard]] std::size_t attached() const;

  void applied(const core::Applied& what, const core::State& state) override;
  void role_changed(const LogPosition& log) override;

 private:
  struct Waiter {
    Ticket ticket{};
    OnNotice notify;
  };

  struct Subscriber {
    Ticket ticket{};
    Lost lost;
  };

  void notify_subscribers(const core::Loss& loss);

  absl::flat_hash_map<RequestKey, std::vector<Waiter>> waits_;
  absl::flat_hash_map<std::uint64_t, std::vector<Subscriber>> leases_;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace tenure::server
