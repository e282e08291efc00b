#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/container/flat_hash_map.h>
#include <boost/asio/steady_timer.hpp>
#include <google/protobuf/arena.h>

#include "server/requests/errors.hpp"
#include "server/rpc/stream.hpp"
#include "tenure/v1/session.pb.h"

namespace tenure::server {

/// Session: pipelined operations and their outcomes on one stream. Operations are proposed as they
/// arrive; outcomes are batched and sent once per applied log entry.
///
/// The protocol of the library: one stream per client. The first message is `hello`; each operation
/// has an id that the client chose, and gets one outcome with this id when it is decided. A queued
/// acquire gets two: `queued`, then the end of the wait.
///
/// The stream also reports lost leases and holds taken by force, without being asked, for all
/// leases that the client used on it.
///
/// Loss of leadership ends the stream with a redirect. Waits and leases stay, so the client repeats
/// its undecided operations at the next leader under the same request ids. A disconnect without a
/// redirect abandons the waits, unless `hello` asked to keep them.
class SessionStream final : public Stream<v1::SessionRequest, v1::SessionResponse> {
 public:
  using Stream::Stream;

 private:
  using OperationId = std::uint64_t;

  /// Wait started on this stream.
  struct Waiting {
    /// Operation that gets the outcome.
    OperationId operation{};
    WaiterRegistry::Ticket ticket{};
    /// Timeout of the wait; null: none. Destroying it cancels the timeout.
    std::unique_ptr<boost::asio::steady_timer> timer{};
  };

  void on_request(v1::SessionRequest& request) override;
  void half_closed() override;
  /// Abandons the client's waits, and revokes its leases if the client requested that in `hello`.
  void closed() override;
  void on_leadership_lost() override { end_for_redirect(leadership_lost()); }
  /// Accepts `hello` in the first message only. False: the stream has ended.
  [[nodiscard]] bool handle_hello(const v1::SessionRequest& request);
  /// Acknowledges `hello`, so that an idle client learns that this member leads.
  void acknowledge_hello();
  /// Authorises the operation, or queues a PERMISSION_DENIED outcome. REQUIRES: a principal.
  [[nodiscard]] bool authorize_operation(v1::Operation& operation);
  /// Starts an operation. REQUIRES: authorised.
  void begin(const v1::Operation& operation);
  void begin_acquire(OperationId id, const v1::Acquire& request);
  /// Confirms the holds of a lease that was restored from a backup; see core::ConfirmHolds.
  void begin_confirm(OperationId id, const v1::ConfirmHolds& request);
  void begin_revoke(OperationId id, core::LeaseId lease);
  void propose(OperationId id, core::Command command);
  /// Completes an operation without a proposal.
  void reject(OperationId id, const Error& error);

  /// Queues the outcome of a proposal. An unknown outcome ends the stream instead.
  void decided(OperationId id, const Result<Decided>& result);
  void acquire_decided(OperationId id, RequestKey key, std::uint64_t timeout_ms,
                       const Result<Decided>& result);
  /// Registers a queued acquire until its notice, its timeout or the end of the stream.
  void wait(OperationId id, RequestKey key, std::uint64_t timeout_ms);
  void on_notice(RequestKey key, const Result<core::Notice>& notice, core::Revision revision);
  /// Abandons the wait. A grant that was decided at the same time is the outcome instead.
  void time_out(RequestKey key);
  /// Leaves the queue on behalf of a client that has disconnected.
  void abandon(RequestKey key, OperationId id);
  void add(OperationId id, const core::Outcome& outcome);
  void add(OperationId id, const Error& error);
  /// Reports losses of this lease from now on.
  void subscribe(core::LeaseId lease, bool is_own);
  void unsubscribe(core::LeaseId lease);
  /// A forced release takes one hold; every other loss ends the whole lease.
  void lost(const core::Loss& loss);
  /// Message that collects outcomes until the next flush.
  [[nodiscard]] v1::SessionResponse& pending_response();
  /// Ends one operation of the flow control.
  void operation_done();
  /// Sends the pending response after the current log entry, or at once if it is full.
  void schedule_flush();
  void flush();
  /// Ends the stream of a half-closed client once it has all outcomes.
  void finish_if_idle();
  /// Ends the stream with a redirect. Waits and leases stay alive for the retry at the next leader.
  void end_for_redirect(const Error& why);
  /// Block sizes that hold a typical batch of outcomes in one or two blocks.
  [[nodiscard]] static google::protobuf::ArenaOptions arena_options() {
    google::protobuf::ArenaOptions options;
    options.start_block_size = 8 * 1024;
    options.max_block_size = 32 * 1024;
    return options;
  }

  [[nodiscard]] std::shared_ptr<SessionStream> self() {
    return std::static_pointer_cast<SessionStream>(shared_from_this());
  }

  /// Client name of `hello`; by default the address.
  std::string client_;
  bool has_hello_ = false;
  /// A disconnect leaves the waits in their queues.
  bool keep_waits_ = false;
  /// A disconnect revokes the leases granted on this stream.
  bool revoke_leases_ = false;

  std::size_t in_flight_ = 0;                        ///< Undecided operations.
  google::protobuf::Arena arena_{arena_options()};   ///< Memory of pending_response_.
  v1::SessionResponse* pending_response_ = nullptr;  ///< Response being collected; null: none.
  std::uint64_t term_ = 0;
  core::Revision revision_{};
  /// Waits started on this stream.
  absl::flat_hash_map<RequestKey, Waiting> waits_;
  struct Lease {
    WaiterRegistry::Ticket ticket{};
    bool is_own = false;  ///< Lease granted on this stream.
  };
  absl::flat_hash_map<std::uint64_t, Lease> leases_;  ///< Leases used on this stream.
  /// A flush is posted to the loop.
  bool is_flush_due_ = false;
  bool is_half_closed_ = false;
  /// No more output. Operations in progress still complete, for their side effects.
  bool is_closed_ = false;
};

}  // namespace tenure::server
