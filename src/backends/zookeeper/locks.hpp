#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "backends/backend.hpp"
#include "backends/zookeeper/connection.hpp"
#include "backends/zookeeper/session.hpp"
#include "backends/zookeeper/strand.hpp"
#include "backends/zookeeper/timer_thread.hpp"
#include "backends/zookeeper/url.hpp"

namespace tenure::backends::zookeeper {

/// Leases, waits and holds at a ZooKeeper ensemble. Leases of one TTL share a session; the servers
/// know a lease only by the nodes attached to it.
///
/// Not thread safe: all calls run on the strand.
class Locks {
 public:
  struct Environment {
    Strand& strand;
    TimerThread& timers;
    DeferredCallbacks& deferred;
    const Address& address;
    /// Called when the main session is connected, or with the reason why not.
    std::function<void(Result<void>)> opened{};
  };

  explicit Locks(Environment environment);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  /// REQUIRES: not on the strand.
  ~Locks() = default;

  void open();
  void set_listener(Listener* listener);
  /// Completes everything and stops. The sessions are closed by the destructor.
  void end();

  void grant_lease(const LeaseRequest& request, Backend::Done<void> done);
  void renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void holders(const std::string& name, Backend::Done<std::vector<Holder>> done);

  /// All open sessions.
  [[nodiscard]] std::vector<Session*> sessions();

 private:
  using Number = std::uint64_t;

  /// Session slot: one session and the leases that use it.
  struct SessionSlot {
    Number number = 0;
    std::chrono::milliseconds ttl{};
    bool is_accepted = false;          ///< The negotiated timeout carries the TTL of the slot.
    std::optional<Error> rejection{};  ///< Reason why it does not.
    std::vector<LeaseId> leases{};
    /// Lease grants that wait for the session.
    std::vector<std::pair<LeaseId, Backend::Done<void>>> pending_grants{};
    TimerThread::Clock::time_point idle_since{};
    std::unique_ptr<Session> session{};
  };
  struct Lease {
    std::chrono::milliseconds ttl{};
    Number slot = 0;
    TimerThread::Clock::time_point deadline{};
    std::vector<Number> holds{};
  };
  /// One acquire request of a hold; reentrant requests share the hold.
  struct HoldRequest {
    RequestId request{};
    Backend::Done<Granted> done{};
  };
  /// A wait or hold: one node, or the nodes of a semaphore.
  struct Hold {
    LeaseId lease{};
    Number slot = 0;
    std::shared_ptr<const AcquireSpec> spec{};
    std::string folder{};
    Kind kind = Kind::lock;
    Queue queue = Queue::wait;
    std::vector<HoldRequest> requests{};
    ClaimId claim{};  ///< Claim of the node; for a semaphore, of its gate.
    std::optional<Granted> granted{};
    // Semaphores only:
    std::optional<Permits> permits{};
    std::vector<ClaimId> leases{};
    std::size_t permits_created = 0;
    std::size_t position = 0;
    bool owns_gate = false;
    bool is_capacity_known = false;
    bool awaits_permit = false;  ///< Waits until a permit is released.
    // Release only:
    bool is_releasing = false;
    std::size_t parts_left = 0;  ///< Nodes whose deletion is pending.
    Result<void> release_result{};
    std::vector<std::move_only_function<void(Result<void>)>> on_released{};
  };
  struct Renewal;
  struct HoldersQuery;

  // locks.cpp
  void begin_claim(Number number);
  void claim_decided(Number number, Result<Grant> grant);
  void settle(Hold& hold, const Result<Granted>& answer);
  [[nodiscard]] bool try_reenter(Lease& lease, AcquireRequest& request,
                                 Backend::Done<Granted>& done);
  void reject(Number number, const Error& why);
  void release_hold(Number number, std::move_only_function<void(Result<void>)> on_released);
  void part_released(Number number, Result<void> answer);
  void forget(Number number);
  void claim_lost(Number slot, ClaimId claim);
  [[nodiscard]] std::string value_of(const Hold& hold) const;

  // locks_semaphore.cpp: a semaphore is a gate and the leases behind it.
  void gate_acquired(Number number, Result<Grant> grant);
  void count_permits(Number number);
  void permits_counted(Number number, const Reply& reply);
  void check_capacity(Number number, const Reply& reply);
  void take_permits(Number number);
  void permit_created(Number number, Result<Grant> grant);
  void gate_released(Number number, FencingToken token);
  void permits_changed(Number slot, const std::string& folder);

  // leases.cpp: leases and the sessions that carry them.
  [[nodiscard]] SessionSlot* slot_for(std::chrono::milliseconds ttl);
  SessionSlot& new_slot(std::chrono::milliseconds ttl);
  void slot_state_changed(Number number, Connection::State state);
  void slot_connected(SessionSlot& slot);
  void slot_ended(Number number, const Error& why);
  void reopen_main(const Error& why);
  /// Whether the lease has no node at the servers, so it can migrate to another session unnoticed.
  [[nodiscard]] bool can_migrate(const Lease& lease);
  void migrate(LeaseId id);
  void retire(Number number);
  void send_heartbeat(Number number);
  void complete_grants(SessionSlot& slot, const std::optional<Error>& why);
  void check_deadline(LeaseId lease);
  void report_connection();
  void renew_part(const std::shared_ptr<Renewal>& renewal, Number slot,
                  std::vector<std::size_t> indexes);
  void call_later(TimerThread::Clock::time_point when, Strand::Job job);

  // locks_holders.cpp
  void query_permits(Number number);
  void query_each(Number number);
  void fail_query(HoldersQuery& query);

  [[nodiscard]] Hold* find(Number number);
  [[nodiscard]] Session* session_of(const Hold& hold);

  const Environment environment_;
  Listener* listener_ = nullptr;
  bool is_reported_connected_ = false;
  bool is_ended_ = false;
  Number last_number_ = 0;
  Number main_slot_ = 0;  ///< Slot of the main session; 0: it ended and is reopened after a delay.
  std::map<Number, SessionSlot> slots_;
  absl::flat_hash_map<LeaseId, Lease> leases_;
  absl::flat_hash_map<Number, std::unique_ptr<Hold>> holds_;
  absl::flat_hash_map<RequestKey, Number> by_request_;
  absl::flat_hash_map<std::pair<Number, ClaimId>, Number> by_claim_;
  std::map<Number, std::shared_ptr<HoldersQuery>> queries_;
};

}  // namespace tenure::backends::zookeeper
