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
#include "backends/zookeeper/address.hpp"
#include "backends/zookeeper/chores.hpp"
#include "backends/zookeeper/desk.hpp"
#include "backends/zookeeper/link.hpp"
#include "backends/zookeeper/session.hpp"

namespace tenure::backends::zookeeper {

/// What is asked of the locks at an ensemble: leases, waits, holds. Leases of one ttl share a
/// session; a lease is nothing at the servers but the nodes that hang on it. All at the desk.
class Locks {
 public:
  struct Surroundings {
    Desk& desk;
    Chores& chores;
    Outbox& outbox;
    const Address& address;
    /// The session that is always there: connected, or why not.
    std::function<void(Result<void>)> opened{};
  };

  explicit Locks(Surroundings around);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  /// Not at the desk.
  ~Locks() = default;

  void open();
  void listen(Listener* listener);
  /// Everything is answered; nothing is asked any more. The sessions end with the object.
  void end();

  void grant_lease(const LeaseRequest& request, Backend::Done<void> done);
  void renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done);
  void revoke(LeaseId lease, Backend::Done<void> done);
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void holders(const std::string& name, Backend::Done<std::vector<Holder>> done);

  /// Every session that there is.
  [[nodiscard]] std::vector<Session*> sessions();

 private:
  using Number = std::uint64_t;

  /// A session and who uses it.
  struct Seat {
    Number number = 0;
    std::chrono::milliseconds ttl{};
    bool is_good = false;            ///< The servers gave what we asked for.
    std::optional<Error> refusal{};  ///< Or they did not.
    std::vector<LeaseId> leases{};
    std::vector<std::pair<LeaseId, Backend::Done<void>>> unanswered{};  ///< Grants of leases.
    Chores::Clock::time_point idle_since{};
    std::unique_ptr<Session> session{};
  };
  struct Lease {
    std::chrono::milliseconds ttl{};
    Number seat = 0;
    Chores::Clock::time_point deadline{};
    std::vector<Number> holds{};
  };
  /// One request of a hold; several share it by reentry.
  struct Sharer {
    RequestId request{};
    Backend::Done<Granted> done{};
  };
  /// What is wanted, waited for, or held: one node, or those of a semaphore.
  struct Hold {
    LeaseId lease{};
    Number seat = 0;
    std::shared_ptr<const AcquireSpec> spec{};
    std::string folder{};
    Kind kind = Kind::lock;
    Queue queue = Queue::wait;
    std::vector<Sharer> sharers{};
    ClaimId claim{};  ///< Of a semaphore: its gate.
    std::optional<Granted> granted{};
    // Of a semaphore:
    std::optional<Permits> permits{};
    std::vector<ClaimId> leases{};
    std::size_t leased = 0;
    std::size_t position = 0;
    bool is_gate_ours = false;
    bool is_capacity_known = false;
    bool is_counting = false;  ///< Waits until there is room.
    // When it is over:
    bool is_leaving = false;
    std::size_t parts = 0;  ///< Nodes that are not gone yet.
    Result<void> left{};
    std::vector<std::move_only_function<void(Result<void>)>> when_gone{};
  };
  struct Renewal;
  struct Inquiry;

  // locks.cpp
  void begin(Number number);
  void decided(Number number, Result<Place> place);
  void settle(Hold& hold, const Result<Granted>& answer);
  [[nodiscard]] bool share(Lease& lease, AcquireRequest& request, Backend::Done<Granted>& done);
  void drop(Number number, const Error& why);
  void leave(Number number, std::move_only_function<void(Result<void>)> gone);
  void part_gone(Number number, Result<void> answer);
  void forget(Number number);
  void taken(Number seat, ClaimId claim);
  [[nodiscard]] std::string value_of(const Hold& hold) const;

  // locks_permits.cpp: a semaphore is a gate, and leases behind it.
  void gate_open(Number number, Result<Place> place);
  void count(Number number);
  void counted(Number number, const Reply& reply);
  void check_capacity(Number number, const Reply& reply);
  void take_permits(Number number);
  void leased(Number number, Result<Place> place);
  void passed(Number number, FencingToken token);
  void room_changed(Number seat, const std::string& folder);

  // locks_leases.cpp: leases and the sessions that carry them.
  [[nodiscard]] Seat* seat_for(std::chrono::milliseconds ttl);
  Seat& new_seat(std::chrono::milliseconds ttl);
  void seat_changed(Number number, Link::State state);
  void seat_connected(Seat& seat);
  void seat_over(Number number, const Error& why);
  void reopen(const Error& why);
  /// Nothing of it was ever there: it can go on in another session, and nobody will have noticed.
  [[nodiscard]] bool can_move(const Lease& lease);
  void move(LeaseId id);
  void retire(Number number);
  void beat(Number number);
  void answer_grants(Seat& seat, const std::optional<Error>& why);
  void watch_deadline(LeaseId lease);
  void tell_connection();
  void renew_part(const std::shared_ptr<Renewal>& renewal, Number seat,
                  std::vector<std::size_t> indexes);
  void later(Chores::Clock::time_point when, Desk::Job job);

  // locks_holders.cpp
  void inquire_permits(Number number);
  void inquire_each(Number number);
  void inquire_ended(Inquiry& inquiry);

  [[nodiscard]] Hold* find(Number number);
  [[nodiscard]] Session* session_of(const Hold& hold);

  const Surroundings around_;
  Listener* listener_ = nullptr;
  bool is_told_connected_ = false;
  bool is_over_ = false;
  Number last_number_ = 0;
  Number main_seat_ = 0;  ///< 0: it ended, and the next one waits a moment.
  std::map<Number, Seat> seats_;
  absl::flat_hash_map<LeaseId, Lease> leases_;
  absl::flat_hash_map<Number, std::unique_ptr<Hold>> holds_;
  absl::flat_hash_map<RequestKey, Number> by_request_;
  absl::flat_hash_map<std::pair<Number, ClaimId>, Number> by_claim_;
  std::map<Number, std::shared_ptr<Inquiry>> inquiries_;
};

}  // namespace tenure::backends::zookeeper
