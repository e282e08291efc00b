#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/etcd/connection.hpp"

namespace tenure::backends::etcd {

/// Our leases at etcd: granting them, keeping them alive over one stream, ending them. etcd counts
/// whole seconds and nothing below about two, so a lease lasts there at least as long as here. All
/// on the loop's thread.
class Leases {
 public:
  /// Grants and ends on their way. etcd turns everybody away when it has too much to do.
  static constexpr std::size_t requests_max = 64;

  using OnGranted = std::move_only_function<void(const Result<void>&)>;

  /// `lost`: etcd says that it is not there any more. Not for one that was revoked or refused.
  Leases(std::shared_ptr<Connection> connection, std::function<void(LeaseId)> lost);
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;
  ~Leases() = default;

  void grant(LeaseId id, std::chrono::milliseconds ttl, Backend::Done<void> done);
  /// Told when it is granted, perhaps at once, or why it is not.
  void when_granted(LeaseId id, OnGranted on_granted);
  void renew(std::vector<LeaseId> ids, Backend::Done<Renewed> done);
  /// Is it still there? If not, `lost` is told.
  void check(LeaseId id);
  void revoke(LeaseId id, Backend::Done<void> done);
  /// It is not there any more.
  void forget(LeaseId id);

  /// Granted or asked for, and not over.
  [[nodiscard]] bool has(LeaseId id) const { return leases_.contains(id); }
  [[nodiscard]] std::vector<LeaseId> all() const;
  /// Of those, or of one that is gone; 0: there are none.
  [[nodiscard]] std::chrono::milliseconds shortest_ttl() const {
    return leases_.empty() ? std::chrono::milliseconds::zero() : shortest_ttl_;
  }
  [[nodiscard]] bool is_idle() const { return in_flight_ == 0 && requests_.empty(); }

  void connected();
  void disconnected();
  /// What is not answered fails.
  void fail_all(const Error& why);

 private:
  class Stream;
  struct Lease {
    std::chrono::milliseconds ttl{};
    Backend::Done<void> done{};        ///< Until it is granted.
    std::vector<OnGranted> waiting{};  ///< For that.
    bool is_granted = false;
    bool is_asked = false;  ///< For, on this connection.
    bool is_retry = false;  ///< Asked for on an earlier one.
  };
  struct Revoke {
    Backend::Done<void> done{};
  };
  /// One batch of renewals.
  struct Renewal {
    Renewed alive{};
    std::size_t left = 0;
    std::optional<Error> error{};
    Backend::Done<Renewed> done{};

    void item_done();
  };
  /// One lease of a batch.
  struct RenewalItem {
    std::shared_ptr<Renewal> renewal{};
    std::size_t index = 0;
  };

  /// Its grant or its end is to be asked for, when it is its turn.
  void enqueue_request(LeaseId id);
  void send_next();
  void request_done();
  void send_grant(LeaseId id);
  void grant_done(LeaseId id, const grpc::Status& status, std::int64_t seconds);
  void complete_grant(LeaseId id, const Result<void>& result);
  void keep_alive(LeaseId id, RenewalItem item);
  void keep_alive_done(std::int64_t number, std::int64_t seconds);
  void stream_ended(const grpc::Status& status);
  void send_revoke(LeaseId id);
  void revoke_done(LeaseId id, const grpc::Status& status);
  void enqueue_revoke(LeaseId id, Backend::Done<void> done);

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<Leases*> self_;  ///< For what may be answered after our end.
  std::function<void(LeaseId)> on_lost_;
  absl::flat_hash_map<LeaseId, Lease> leases_;
  std::chrono::milliseconds shortest_ttl_{};
  absl::flat_hash_map<LeaseId, Revoke> revokes_;
  std::shared_ptr<Stream> stream_;
  struct Awaiting {
    LeaseId id{};
    std::deque<RenewalItem> items{};
  };
  absl::flat_hash_map<std::int64_t, Awaiting> awaiting_reply_;  ///< Renewals without an answer.
  std::deque<LeaseId> requests_;  ///< Whose grant or end is to be asked for.
  std::size_t in_flight_ = 0;     ///< Those without an answer.
};

}  // namespace tenure::backends::etcd
