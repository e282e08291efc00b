#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/container/flat_hash_map.h>
#include <boost/asio/steady_timer.hpp>

#include "server/rpc/stream.hpp"
#include "tenure/v1/session.pb.h"

namespace tenure::server {

/// Session: many operations and their outcomes on one stream. Operations are proposed from gRPC's
/// thread as they come; their outcomes gather on the store's thread and leave together when the
/// entry that decided them is through.
class SessionStream final : public Stream<v1::SessionRequest, v1::SessionResponse> {
 public:
  SessionStream(Desk& desk, std::string peer);

 private:
  using OperationId = std::uint64_t;

  /// A wait of this stream. On the store's thread only.
  struct Waiting {
    OperationId operation{};
    Callers::Ticket ticket{};
    std::unique_ptr<boost::asio::steady_timer> timer{};
  };

  // On gRPC's thread.
  void received(v1::SessionRequest& request) override;
  void half_closed() override;
  void cut_off() override;
  void closed() override { cut_off(); }
  [[nodiscard]] bool greet(const v1::SessionRequest& request);
  void begin(const v1::Operation& operation);
  void begin_acquire(OperationId id, const v1::Acquire& request);
  void begin_revoke(OperationId id, core::LeaseId lease);
  void propose(OperationId id, core::Command command);
  void refuse(OperationId id, const Error& error);

  // On the store's thread.
  void decided(OperationId id, const Result<Decided>& result);
  void acquire_decided(OperationId id, WaitKey key, std::uint64_t timeout_ms,
                       const Result<Decided>& result);
  void wait(OperationId id, WaitKey key, std::uint64_t timeout_ms);
  void told(WaitKey key, const Result<core::Notice>& notice, core::Revision revision);
  void time_out(WaitKey key);
  void abandon(WaitKey key, OperationId id);
  void add(OperationId id, const core::Outcome& outcome);
  void add(OperationId id, const Error& error);
  void follow(core::LeaseId lease, bool is_own);
  void unfollow(core::LeaseId lease);
  void lost(const core::Loss& loss);
  void settle_one();
  void flush_soon();
  void flush();
  /// The client is gone: ends its waits, and its leases if it asked for that.
  void clean_up();
  void finish_if_idle();

  [[nodiscard]] std::shared_ptr<SessionStream> self() {
    return std::static_pointer_cast<SessionStream>(shared_from_this());
  }

  // Of gRPC's thread until the first operation, constant then.
  std::string client_;
  std::string peer_;
  bool is_greeted_ = false;
  bool keeps_waits_ = false;
  bool revokes_leases_ = false;

  std::atomic<std::size_t> in_flight_ = 0;  ///< Operations proposed and not decided.
  std::atomic<bool> is_held_back_ = false;  ///< Not reading until some are.

  // Of the store's thread.
  v1::SessionResponse gathered_;
  std::uint64_t term_ = 0;
  core::Revision revision_{};
  absl::flat_hash_map<WaitKey, Waiting> waits_;
  struct Lease {
    Callers::Ticket ticket{};
    bool is_own = false;  ///< Granted on this stream.
  };
  absl::flat_hash_map<std::uint64_t, Lease> leases_;  ///< Used on this stream.
  bool is_flush_due_ = false;
  bool is_half_closed_ = false;
  bool is_gone_ = false;
};

}  // namespace tenure::server
