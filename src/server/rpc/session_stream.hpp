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
class SessionStream final : public Stream<v1::SessionRequest, v1::SessionResponse> {
 public:
  using Stream::Stream;

 private:
  using OperationId = std::uint64_t;

  /// Wait started on this stream.
  struct Waiting {
    OperationId operation{};
    WaiterRegistry::Ticket ticket{};
    std::unique_ptr<boost::asio::steady_timer> timer{};
  };

  void on_request(v1::SessionRequest& request) override;
  void half_closed() override;
  /// Abandons the client's waits, and revokes its leases if the client requested that in `hello`.
  void closed() override;
  void on_leadership_lost() override { end_for_redirect(leadership_lost()); }
  [[nodiscard]] bool handle_hello(const v1::SessionRequest& request);
  /// Acknowledges `hello`, so that an idle client learns that this member leads.
  void acknowledge_hello();
  /// Authorises the operation, or queues a PERMISSION_DENIED outcome. REQUIRES: a principal.
  [[nodiscard]] bool authorize_operation(v1::Operation& operation);
  void begin(const v1::Operation& operation);
  void begin_acquire(OperationId id, const v1::Acquire& request);
  void begin_confirm(OperationId id, const v1::ConfirmHolds& request);
  void begin_revoke(OperationId id, core::LeaseId lease);
  void propose(OperationId id, core::Command command);
  void reject(OperationId id, const Error& error);

  void decided(OperationId id, const Result<Decided>& result);
  void acquire_decided(OperationId id, RequestKey key, std::uint64_t timeout_ms,
                       const Result<Decided>& result);
  void wait(OperationId id, RequestKey key, std::uint64_t timeout_ms);
  void on_notice(RequestKey key, const Result<core::Notice>& notice, core::Revision revision);
  void time_out(RequestKey key);
  void abandon(RequestKey key, OperationId id);
  void add(OperationId id, const core::Outcome& outcome);
  void add(OperationId id, const Error& error);
  void subscribe(core::LeaseId lease, bool is_own);
  void unsubscribe(core::LeaseId lease);
  void lost(const core::Loss& loss);
  [[nodiscard]] v1::SessionResponse& pending_response();
  void operation_done();
  void schedule_flush();
  void flush();
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

  std::string client_;
  bool has_hello_ = false;
  bool keep_waits_ = false;
  bool revoke_leases_ = false;

  std::size_t in_flight_ = 0;                        ///< Undecided operations.
  google::protobuf::Arena arena_{arena_options()};   ///< Of what is pending_response.
  v1::SessionResponse* pending_response_ = nullptr;  ///< Response being collected; null: none.
  std::uint64_t term_ = 0;
  core::Revision revision_{};
  absl::flat_hash_map<RequestKey, Waiting> waits_;
  struct Lease {
    WaiterRegistry::Ticket ticket{};
    bool is_own = false;  ///< Lease granted on this stream.
  };
  absl::flat_hash_map<std::uint64_t, Lease> leases_;  ///< Leases used on this stream.
  bool is_flush_due_ = false;
  bool is_half_closed_ = false;
  bool is_closed_ = false;
};

}  // namespace tenure::server
