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
#include "backends/fan_in.hpp"
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
  /// Parts of the backend that this class uses. They outlive it.
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

  /// Opens the main session.
  void open();
  /// Sets the observer of losses and connection changes.
  void set_listener(Listener* listener);
  /// Completes everything and stops. The sessions are closed by the destructor.
  void end();

  /// Grants a lease: assigns it to the session of its TTL, which is opened on demand.
  void grant_lease(const LeaseRequest& request, Backend::Done<void> done);
  /// Renews leases by a round trip to the leader on each of their sessions.
  void renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done);
  /// Ends a lease and deletes the nodes of its holds.
  void revoke(LeaseId lease, Backend::Done<void> done);
  /// Claims a node for the request, or joins a hold of the same lease.
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  /// Cancels a pending acquire; see Backend::abandon.
  void abandon(LeaseId lease, RequestId request);
  /// Releases one acquisition; the nodes are deleted with the last of its reentrant ones.
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  /// Queries the holders of a name from the servers.
  void holders(const std::string& name, Backend::Done<std::vector<Holder>> done);

  /// All open sessions.
  [[nodiscard]] std::vector<Session*> sessions();

 private:
  using Number = std::uint64_t;

  /// Session slot: one session and the leases that use it.
  struct SessionSlot {
    /// Key in `slots_`; never reused.
    Number number = 0;
    std::chrono::milliseconds ttl{};
    /// The negotiated timeout carries the TTL of the slot.
    bool is_accepted = false;
    /// Reason why it does not.
    std::optional<Error> rejection{};
    std::vector<LeaseId> leases{};
    /// Lease grants that wait for the session.
    std::vector<std::pair<LeaseId, Backend::Done<void>>> pending_grants{};
    TimerThread::Clock::time_point idle_since{};
    std::unique_ptr<Session> session{};
  };
  /// One lease of this client. Its deadline is enforced by this process.
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
    /// Claim of the node; for a semaphore, of its gate.
    ClaimId claim{};
    std::optional<Granted> granted{};
    // Semaphores only:
    std::optional<Permits> permits{};
    std::vector<ClaimId> leases{};
    std::size_t permits_created = 0;
    std::size_t position = 0;
    bool owns_gate = false;
    bool is_capacity_known = false;
    /// Waits until a permit is released.
    bool awaits_permit = false;
    // Release only:
    bool is_releasing = false;
    /// Nodes whose deletion is pending.
    std::size_t parts_left = 0;
    Result<void> release_result{};
    std::vector<std::move_only_function<void(Result<void>)>> on_released{};
  };
  /// One pending query for holders.
  struct HoldersQuery;

  // locks.cpp
  /// Claims the node of a hold, or the gate of a semaphore.
  void begin_claim(Number number);
  /// Completes a hold from the decision on its claim.
  void claim_decided(Number number, Result<Grant> grant);
  /// Completes the pending requests of a hold.
  void settle(Hold& hold, const Result<Granted>& answer);
  /// Resolves a conflict with a hold of the same lease. Returns true if that decides the request.
  [[nodiscard]] bool try_reenter(Lease& lease, AcquireRequest& request,
                                 Backend::Done<Granted>& done);
  /// Fails the pending requests of a hold and deletes its nodes.
  void reject(Number number, const Error& why);
  /// Deletes the nodes of a hold; `on_released` runs when all are gone.
  void release_hold(Number number, std::move_only_function<void(Result<void>)> on_released);
  /// Counts a deleted node; the last one completes the release.
  void part_released(Number number, Result<void> answer);
  /// Removes a hold from all tables.
  void forget(Number number);
  /// Handles a node that another client deleted.
  void claim_lost(Number slot, ClaimId claim);
  [[nodiscard]] std::string value_of(const Hold& hold) const;

  // locks_semaphore.cpp: a semaphore is a gate and the leases behind it.
  /// Continues a semaphore request that has passed the gate.
  void gate_acquired(Number number, Result<Grant> grant);
  /// Lists the granted permits, with a watch if the request waits.
  void count_permits(Number number);
  /// Creates the permit nodes if they fit, otherwise waits.
  void permits_counted(Number number, const Reply& reply);
  /// Compares the capacity with that of an existing permit.
  void check_capacity(Number number, const Reply& reply);
  /// Creates one node per wanted permit.
  void take_permits(Number number);
  /// Counts created permits; the last one releases the gate.
  void permit_created(Number number, Result<Grant> grant);
  /// Grants the request after the gate is free again.
  void gate_released(Number number, FencingToken token);
  /// Lists the permits again for the requests that wait for one.
  void permits_changed(Number slot, const std::string& folder);

  // leases.cpp: leases and the sessions that carry them.
  /// Slot for a TTL, opened on demand; null if all sessions are in use.
  [[nodiscard]] SessionSlot* slot_for(std::chrono::milliseconds ttl);
  SessionSlot& new_slot(std::chrono::milliseconds ttl);
  void slot_state_changed(Number number, Connection::State state);
  /// Checks the negotiated timeout and completes pending grants.
  void slot_connected(SessionSlot& slot);
  /// Ends a slot: its leases are lost or migrate, its waits fail.
  void slot_ended(Number number, const Error& why);
  /// Opens the main session again.
  void reopen_main(const Error& why);
  /// Whether the lease has no node at the servers, so it can migrate to another session unnoticed.
  [[nodiscard]] bool can_migrate(const Lease& lease);
  /// Moves a lease without nodes to a new session.
  void migrate(LeaseId id);
  /// Closes the session of a slot.
  void retire(Number number);
  /// Sends a heartbeat and schedules the next one; closes idle sessions.
  void send_heartbeat(Number number);
  /// Completes the pending lease grants of a slot.
  void complete_grants(SessionSlot& slot, const std::optional<Error>& why);
  /// Ends a lease that was not renewed before its deadline.
  void check_deadline(LeaseId lease);
  /// Reports changes of the main session's connection state.
  void report_connection();
  void renew_part(const std::shared_ptr<FanIn<Renewed>>& renewal, Number slot,
                  std::vector<std::size_t> indexes);
  /// Runs a job on the strand at that time, unless this object has ended.
  void call_later(TimerThread::Clock::time_point when, Strand::Job job);

  // locks_holders.cpp
  /// Second step of a query: lists the permits of a semaphore.
  void query_permits(Number number);
  /// Third step: reads the value of each node.
  void query_each(Number number);
  /// Fails a query whose session has ended.
  void fail_query(HoldersQuery& query);

  /// Null if the hold is forgotten.
  [[nodiscard]] Hold* find(Number number);
  [[nodiscard]] Session* session_of(const Hold& hold);

  const Environment environment_;
  /// Observer of losses; null before start() and after end().
  Listener* listener_ = nullptr;
  /// Connection state that the listener knows.
  bool is_reported_connected_ = false;
  /// Whether end() was called: timers do nothing any more.
  bool is_ended_ = false;
  Number last_number_ = 0;
  /// Slot of the main session; 0: it ended and is reopened after a delay.
  Number main_slot_ = 0;
  std::map<Number, SessionSlot> slots_;
  absl::flat_hash_map<LeaseId, Lease> leases_;
  absl::flat_hash_map<Number, std::unique_ptr<Hold>> holds_;
  /// Hold of each request.
  absl::flat_hash_map<RequestKey, Number> by_request_;
  /// Hold of each claim; claim ids are unique per session only.
  absl::flat_hash_map<std::pair<Number, ClaimId>, Number> by_claim_;
  /// Queries without a result.
  std::map<Number, std::shared_ptr<HoldersQuery>> queries_;
};

}  // namespace tenure::backends::zookeeper
