#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <boost/asio/steady_timer.hpp>

#include "core/command.hpp"
#include "server/rpc/desk.hpp"
#include "server/rpc/unary.hpp"
#include "tenure/v1/lock.pb.h"

namespace tenure::server {

/// One Lock or TryLock: proposes the acquisition, waits for its end, answers. A caller that goes
/// away while it waits leaves the queue.
///
/// Of the store's thread.
class LockCall : public std::enable_shared_from_this<LockCall> {
 public:
  struct Order {
    core::Acquire acquire{};
    std::optional<std::chrono::milliseconds> timeout{};  ///< None: waits for ever.
    bool has_own_id = true;  ///< False: nobody but us knows the request id.
  };

  static void open(Desk& desk, Order order, const ReplyTo<v1::LockResponse>& reply);

  LockCall(Desk& desk, Order order, ReplyTo<v1::LockResponse> reply);

 private:
  void propose();
  void decided(Result<Decided> result);
  void wait(const core::Queued& queued, std::uint64_t term);
  void told(const Result<core::Notice>& notice, core::Revision revision);
  void time_out();
  void cut_off();
  /// Leaves the queue, unless somebody else asks for the same. If it was granted just before and
  /// nobody can ask for the grant any more, gives it back.
  void leave_queue();
  void abandoned(const Result<Decided>& result);

  void answer(const core::Outcome& outcome, core::Revision revision);
  void refuse(const core::Refused& refused, core::Revision revision);
  void refuse(const Error& error);
  void finish(h2::Status status);

  Desk& desk_;
  Order order_;
  WaitKey key_;
  ReplyTo<v1::LockResponse> reply_;        ///< Null: answered.
  std::optional<Callers::Ticket> ticket_;  ///< While it waits.
  std::optional<boost::asio::steady_timer> timer_;
  std::uint64_t term_ = 0;
  bool is_cut_off_ = false;
  bool is_timed_out_ = false;
};

}  // namespace tenure::server
