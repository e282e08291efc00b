#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/steady_timer.hpp>

#include "core/command.hpp"
#include "server/requests/rollback_gate.hpp"
#include "server/requests/waiter_registry.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// Pending acquire request of one client call, over gRPC or HTTP: proposes the command, waits for
/// the grant, the timeout or a disconnect of the client, and reports the completion once. A client
/// that disconnects leaves the wait queue. Keeps itself alive until the completion.
///
///     [delayed →] proposed → queued → completed
///                     \________\→ abandoned → completed
///
/// A request whose client chose no request id is rolled back if it is granted after the disconnect,
/// because no client can ask for its outcome. Until then, other requests of its lease are delayed.
///
/// Not thread safe; belongs to the store's thread.
class PendingAcquire : public std::enable_shared_from_this<PendingAcquire> {
 public:
  /// Services that a pending acquire uses. Outlives all of them.
  struct Context {
    Store& store;
    WaiterRegistry& waiters;
    RollbackGate& rollbacks;
    /// The server stops: a disconnect is then not caused by the client, so its wait stays queued.
    const std::atomic<bool>& is_stopping;
  };

  struct Request {
    core::Acquire acquire{};
    std::optional<std::chrono::milliseconds> timeout{};  ///< Limit of the wait; empty: unlimited.
    bool has_client_request_id =
        true;  ///< False: the server generated the request id, so no retry is possible.
  };

  struct Completion {
    Result<core::Outcome> outcome;  ///< Outcome; an error: the outcome is unknown.
    core::Revision revision{};
    std::uint64_t term = 0;
    std::size_t position = 0;  ///< Queue position at the start of the wait; 0: it did not wait.
  };
  using OnComplete = std::move_only_function<void(Completion)>;

  /// Starts a request. The result serves for on_disconnect() only; the request keeps itself alive.
  static std::shared_ptr<PendingAcquire> begin(const Context& context, Request request,
                                               OnComplete on_complete);

  PendingAcquire(const Context& context, Request request, OnComplete on_complete);

  /// The client has disconnected.
  void on_disconnect();

 private:
  /// Proposes the acquire, once. No effect if the client disconnected while it was delayed.
  void propose();
  void decided(Result<Decided> result);
  /// Registers for the notice and starts the timeout.
  void wait(const core::Queued& queued);
  /// End of the wait, or loss of leadership.
  void notified(const Result<core::Notice>& notice, core::Revision revision);
  /// A grant that arrives while the timeout is being proposed wins: the client gets the lock.
  void time_out();
  /// Leaves the queue, unless another call waits for the same request. Releases a grant that
  /// arrived at the same time if no client can ask for it.
  void leave_queue();
  void abandoned(const Result<Decided>& result);
  /// Delays later requests of the lease, if this one may have to be rolled back.
  void close_gate();
  /// Releases a grant. An upgraded hold returns to its former mode and keeps the token of the
  /// upgrade; its mode stays if another request has reentered it since.
  void roll_back(const core::Granted& granted);
  /// Reports the completion. Only the first call has an effect.
  void finish(Result<core::Outcome> outcome, core::Revision revision = {});

  const Context context_;
  Request request_;
  RequestKey key_;
  OnComplete on_complete_;                        ///< Callback; empty: called.
  std::optional<WaiterRegistry::Ticket> ticket_;  ///< Registration; set during the wait.
  std::optional<boost::asio::steady_timer> timer_;
  /// Mode of the hold that this request upgrades: as it was when the request was proposed or, if
  /// the request waits, as it is until the grant.
  std::optional<LockMode> former_mode_;
  /// Count of that hold after a grant, if no other request came before this one; empty: the mode is
  /// exact in any case.
  std::optional<std::uint32_t> expected_count_;
  std::optional<RollbackGate::Closed> closed_gate_;  ///< From the disconnect to the completion.
  std::uint64_t term_ = 0;
  std::size_t position_ = 0;
  bool is_proposed_ = false;
  bool is_disconnected_ = false;
  bool is_timed_out_ = false;
};

}  // namespace tenure::server
