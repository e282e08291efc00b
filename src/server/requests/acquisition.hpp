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
#include "server/requests/callers.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// One request for locks of a caller who waits for its end: proposes it, stands in the queue, and
/// tells what became of it, once. A caller that goes away meanwhile leaves the queue. Whichever
/// way it was asked: by gRPC or HTTP.
///
/// Of the store's thread.
class Acquisition : public std::enable_shared_from_this<Acquisition> {
 public:
  /// Outlives all of them.
  struct Around {
    Store& store;
    Callers& callers;
    /// The server stops: who is cut off now did not go away, so its wait stays in the queue.
    const std::atomic<bool>& is_stopping;
  };

  struct Order {
    core::Acquire acquire{};
    std::optional<std::chrono::milliseconds> timeout{};  ///< None: waits for ever.
    bool has_own_id = true;  ///< False: nobody but us knows the request id.
  };

  struct End {
    Result<core::Outcome> outcome;  ///< An error: nobody knows what became of it.
    core::Revision revision{};
    std::uint64_t term = 0;
    std::size_t position = 0;  ///< Where it joined the queue; 0: it did not wait.
  };
  using Ended = std::move_only_function<void(End)>;

  /// Whoever has it can say cut_off(); it lives by itself until its end.
  static std::shared_ptr<Acquisition> begin(const Around& around, Order order, Ended ended);

  Acquisition(const Around& around, Order order, Ended ended);

  /// The caller has gone.
  void cut_off();

 private:
  void propose();
  void decided(Result<Decided> result);
  void wait(const core::Queued& queued);
  void told(const Result<core::Notice>& notice, core::Revision revision);
  void time_out();
  /// Leaves the queue, unless somebody else asks for the same. If it was granted just before and
  /// nobody can ask for the grant any more, gives it back.
  void leave_queue();
  void abandoned(const Result<Decided>& result);
  /// Gives back what was granted. An upgraded hold gets the mode that it had before, and keeps the
  /// token of the upgrade.
  void undo(const core::Granted& granted);
  void finish(Result<core::Outcome> outcome, core::Revision revision = {});

  const Around around_;
  Order order_;
  RequestKey key_;
  Ended ended_;                            ///< Empty: told.
  std::optional<Callers::Ticket> ticket_;  ///< While it waits.
  std::optional<boost::asio::steady_timer> timer_;
  /// Mode of the hold that this request upgrades: as it was when the request was proposed or, if
  /// the request waits, as it is until the grant.
  std::optional<LockMode> former_mode_;
  std::uint64_t term_ = 0;
  std::size_t position_ = 0;
  bool is_cut_off_ = false;
  bool is_timed_out_ = false;
};

}  // namespace tenure::server
