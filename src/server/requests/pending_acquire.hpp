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
#include "server/requests/waiter_registry.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// One request for locks of a caller who waits for its end: proposes it, stands in the queue, and
/// tells what became of it, once. A caller that goes away meanwhile leaves the queue. Whichever
/// way it was asked: by gRPC or HTTP.
///
/// Of the store's thread.
class PendingAcquire : public std::enable_shared_from_this<PendingAcquire> {
 public:
  /// Outlives all of them.
  struct Context {
    Store& store;
    WaiterRegistry& waiters;
    /// The server stops: who is cut off now did not go away, so its wait stays in the queue.
    const std::atomic<bool>& is_stopping;
  };

  struct Request {
    core::Acquire acquire{};
    std::optional<std::chrono::milliseconds> timeout{};  ///< None: waits for ever.
    bool has_client_request_id = true;  ///< False: nobody but us knows the request id.
  };

  struct Completion {
    Result<core::Outcome> outcome;  ///< An error: nobody knows what became of it.
    core::Revision revision{};
    std::uint64_t term = 0;
    std::size_t position = 0;  ///< Where it joined the queue; 0: it did not wait.
  };
  using OnComplete = std::move_only_function<void(Completion)>;

  /// Whoever has it can say on_disconnect(); it lives by itself until its end.
  static std::shared_ptr<PendingAcquire> begin(const Context& context, Request request,
                                               OnComplete on_complete);

  PendingAcquire(const Context& context, Request request, OnComplete on_complete);

  /// The caller has gone.
  void on_disconnect();

 private:
  void propose();
  void decided(Result<Decided> result);
  void wait(const core::Queued& queued);
  void notified(const Result<core::Notice>& notice, core::Revision revision);
  void time_out();
  /// Leaves the queue, unless somebody else asks for the same. If it was granted just before and
  /// nobody can ask for the grant any more, gives it back.
  void leave_queue();
  void abandoned(const Result<Decided>& result);
  /// Gives back what was granted. An upgraded hold gets the mode that it had before, and keeps the
  /// token of the upgrade.
  void roll_back(const core::Granted& granted);
  void finish(Result<core::Outcome> outcome, core::Revision revision = {});

  const Context context_;
  Request request_;
  RequestKey key_;
  OnComplete on_complete_;                        ///< Empty: told.
  std::optional<WaiterRegistry::Ticket> ticket_;  ///< While it waits.
  std::optional<boost::asio::steady_timer> timer_;
  /// Mode of the hold that this request upgrades: as it was when the request was proposed or, if
  /// the request waits, as it is until the grant.
  std::optional<LockMode> former_mode_;
  std::uint64_t term_ = 0;
  std::size_t position_ = 0;
  bool is_disconnected_ = false;
  bool is_timed_out_ = false;
};

}  // namespace tenure::server
