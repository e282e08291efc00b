#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <boost/asio/io_context.hpp>

#include "backends/backend.hpp"
#include "backends/etcd/key_watches.hpp"
#include "backends/etcd/leases.hpp"
#include "backends/etcd/queue.hpp"
#include "backends/etcd/requests.hpp"
#include "backends/etcd/txn_batcher.hpp"
#include "net/timer_queue.hpp"

namespace tenure::backends::etcd {

/// Queue entries of this client: waits and holds. Each is one key.
///
/// A waiter watches only its predecessor, so a release wakes one waiter (no herd). If the
/// predecessor belongs to this client, no watch is needed: the transaction that deletes its key
/// also lists the queue for the next waiter.
///
/// A predecessor never comes back and newer entries have larger revisions. It is therefore always
/// correct to wait for any conflicting predecessor and to list the queue again when it is gone.
///
/// Not thread safe: all calls run on the event loop's thread.
class Locks {
 public:
  /// Parts of the backend that this class uses. They outlive it.
  struct Dependencies {
    TxnBatcher& batcher;
    KeyWatches& watches;
    Leases& leases;
    Connection& connection;
  };

  Locks(boost::asio::io_context& loop, std::string root, Dependencies dependencies);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  /// Sets the observer of losses; null: none.
  void set_listener(Listener* listener) noexcept { listener_ = listener; }

  /// Requests a lease from etcd.
  void grant_lease(const LeaseRequest& request, Backend::Done<void> done);
  void renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done) {
    dependencies_.leases.renew(std::move(leases), std::move(done));
  }
  /// Queues an acquire. `done` runs with the grant or the error.
  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  /// Cancels a pending acquire; see Backend::abandon.
  void abandon(LeaseId lease, RequestId request);
  /// Releases one acquisition; the key is deleted with the last of its reentrant ones.
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  /// Rewrites the mode in the value of the key. Waiters that become compatible list the queue.
  void downgrade(const DowngradeRequest& request, Backend::Done<void> done);
  /// Lists the front of the queue.
  void holders(std::string_view name, Backend::Done<std::vector<Holder>> done);
  /// Drops all entries of a lease and revokes it at etcd, which deletes their keys.
  void revoke(LeaseId lease, Backend::Done<void> done);

  /// Handles a lease that etcd reports as ended.
  void lease_lost(LeaseId lease);
  /// The servers reject this client: fails all waits and, until accepted(), new requests. The keys
  /// of the waits are deleted when the servers accept requests again.
  void rejected(const Error& why);
  /// The servers accept this client.
  void accepted() { rejection_.reset(); }
  /// Fails all waits and revokes all leases, as far as etcd is reachable.
  void shut_down();

 private:
  /// Life cycle of an entry: starting → enqueuing → waiting → held → leaving. Stages may be
  /// skipped.
  enum class Stage : std::uint8_t {
    /// The lease is not granted yet.
    starting,
    /// The creation of the key is in flight.
    enqueuing,
    waiting,
    held,
    /// The deletion of the key is in flight.
    leaving,
  };
  /// One wait or hold of this client.
  struct Entry {
    AcquireRequest request{};
    /// Callback of the acquire; null once it was called.
    Backend::Done<Granted> done{};
    Claim claim = LockMode::exclusive;
    QueueKey queue_key{};
    ListOptions list_options{};
    Stage stage = Stage::starting;
    bool is_cancelled = false;
    bool may_be_recreated =
        /// A duplicate of the creation may still arrive and create the key again.
        false;
    /// Attempts of a request that does not wait.
    std::uint32_t attempts = 0;
    /// Revision of the latest list of the queue.
    std::int64_t listed_revision = 0;
    /// Position on entry to the queue.
    std::size_t position = 0;
    /// Key or folder that the entry waits for.
    std::string waits_for{};
    KeyWatches::Id own_watch = 0;
    bool is_listing = false;
    /// The queue changed while the list was in flight.
    bool needs_relist = false;
    std::uint32_t count = 1;
    std::vector<RequestKey> reentries{};
  };
  /// Key or folder that entries of this client wait for.
  struct Target {
    /// Watch of the target; 0 if it is a key of this client.
    KeyWatches::Id watch = 0;
    KeyWatches::Events events = KeyWatches::Events::deletes;
    /// Revision of the latest reported change.
    std::int64_t notified_revision = 0;
    std::vector<RequestKey> waiting{};
  };
  /// State of a lock while this client has entries in its queue.
  struct Folder {
    absl::btree_map<std::int64_t, RequestKey>
        /// Entries of known revision, in queue order.
        entries{};
    /// Up to this revision there is no writer, because a reader of this client was granted there.
    std::int64_t no_writer_until = 0;
    /// Readers whose predecessors are unknown. They share one list; readers that arrive during it
    /// share the next one.
    std::vector<RequestKey> readers{};
    bool is_listing = false;
  };
  using Outcome = Result<TxnPart::Reply>;

  // locks.cpp: from the request to the grant.
  /// Null if the entry has ended: callbacks use it to detect a late reply.
  [[nodiscard]] Entry* find(const RequestKey& id);
  /// Joins a covering hold of the same lease. Returns true if that completes the request.
  [[nodiscard]] bool reenter(const AcquireRequest& request, const std::string& folder,
                             const Claim& claim, Backend::Done<Granted>& done);
  /// Whether an entry of the same lease conflicts, so that the request could never be granted.
  [[nodiscard]] bool is_self_blocking(const Entry& entry);
  /// Sends the creation of the key: with a list if the request waits, conditional on an unchanged
  /// queue otherwise.
  void submit(const RequestKey& id);
  /// Evaluates the reply to a creation of a request that waits.
  void enqueue_done(const RequestKey& id, const Outcome& answer);
  [[nodiscard]] std::optional<WaitFor> own_predecessor(const Entry& entry) const;
  /// Records the create revision, which is the position in the queue.
  void revision_known(const RequestKey& id, std::int64_t revision);
  /// Evaluates the reply to a conditional creation; retries if the queue changed without a
  /// conflict.
  void try_done(const RequestKey& id, const Outcome& answer);
  /// Lists the queue for an entry. `notified_revision`: revision that this member has reported, so
  /// its local state is new enough; 0: linearizable read.
  void refresh(const RequestKey& id, std::int64_t notified_revision = 0);
  /// Evaluates a list of the queue.
  void listed(const RequestKey& id, const pb::RangeResponse& list, std::int64_t revision);
  /// Grants the entry, or waits for the conflicting predecessor.
  void apply_admission(const RequestKey& id, const Admission& admission, bool has_successors);

  // locks_wait.cpp: predecessors and wake-ups.
  /// Attaches the entry to the key or folder that it waits for, and watches it if it is foreign.
  void wait_for(const RequestKey& id, const WaitFor& wait_target);
  /// Starts the watch of a foreign key or of the folder.
  void watch_target(const std::string& key, Target& target, std::int64_t from);
  /// Handles an event of a target's watch.
  void target_changed(const std::string& key, const Result<KeyWatches::Change>& what);
  /// Detaches the entry from its target; the last one removes the watch.
  void stop_waiting(const RequestKey& id, Entry& entry);
  /// Lists the queue for all waiters of a key that was deleted or became compatible.
  void key_released(const std::string& key, std::int64_t notified_revision = 0);
  [[nodiscard]] std::vector<RequestKey> idle_waiters(const std::string& key);
  [[nodiscard]] bool should_list_together(const std::vector<RequestKey>& ids) const;
  /// Lists the whole queue once for many waiters.
  void refresh_together(const std::string& folder, const std::vector<RequestKey>& ids,
                        std::int64_t since);
  /// Adds a new reader to the next shared list of the folder.
  void refresh_with_readers(const RequestKey& id);
  /// Starts the shared list for the readers collected so far.
  void refresh_readers(const std::string& folder);
  void listed_together(const std::string& folder, const std::vector<RequestKey>& ids,
                       const TxnPart::Reply& answer, const pb::RangeResponse& list);

  // locks.cpp
  /// Completes the acquire. If permits were granted after a wait, the value is rewritten to notify
  /// successors in other processes.
  void grant(const RequestKey& id, bool has_successors);

  // locks_release.cpp: release, cancellation, loss.
  /// Calls the callback of the acquire, once.
  static void complete(Entry& entry, Result<Granted> answer);
  /// Fails a queued entry and deletes its key.
  void leave(const RequestKey& id, Error why);
  void remove_key(const RequestKey& id, Backend::Done<void> done);
  /// Evaluates the lists in the reply to a deletion, one per waiter.
  void listed_each(const std::vector<RequestKey>& ids, const Outcome& answer);
  /// Completes a release from the reply to the deletion.
  static void removal_done(const Outcome& answer, Backend::Done<void> done);
  /// Deletes a key that may exist, because its creation is unconfirmed.
  void remove_unconfirmed(LeaseId lease, const QueueKey& queue_key);
  /// Deletes the key regardless of its create revision.
  void remove_any(QueueKey queue_key, std::move_only_function<void(const Outcome&)> answered);
  /// Deletes the key again if a late duplicate of the creation recreates it.
  void watch_for_recreation(LeaseId lease, const QueueKey& queue_key, std::int64_t revision);
  /// Fails an entry whose key does not exist, or is deleted separately.
  void fail_entry(const RequestKey& id, const Error& why);
  /// Removes an entry from all tables. REQUIRES: the entry exists.
  [[nodiscard]] Entry extract(const RequestKey& id);
  /// Watches the own key, to report its deletion by another client.
  void watch_own(const RequestKey& id);
  /// Starts watch_own() after a delay that most entries do not reach.
  void watch_own_later(const RequestKey& id);
  void own_key_changed(const RequestKey& id, const Result<KeyWatches::Change>& what);
  /// Ends an entry whose key is gone: fails the wait, or reports the loss of the hold.
  void own_key_lost(const RequestKey& id);
  [[nodiscard]] std::vector<RequestKey> entries_of(LeaseId lease) const;
  /// Fails all entries of a lease; returns their keys.
  [[nodiscard]] std::vector<std::string> drop_lease(LeaseId lease, const Error& why);

  std::string root_;
  Dependencies dependencies_;
  Listener* listener_ = nullptr;
  /// Error while the servers reject this client; empty otherwise.
  std::optional<Error> rejection_;
  absl::flat_hash_map<RequestKey, Entry> entries_;
  absl::flat_hash_map<std::string, RequestKey> by_key_;
  absl::flat_hash_map<LeaseId, std::vector<RequestKey>> by_lease_;
  /// Entry shared by each reentrant acquisition.
  absl::flat_hash_map<RequestKey, RequestKey> reentries_;
  absl::flat_hash_map<std::string, Target> targets_;
  /// Locks with entries of known revision.
  absl::flat_hash_map<std::string, Folder> folders_;
  /// Watches of deleted keys that a late duplicate may create again, by lease.
  absl::flat_hash_map<LeaseId, std::vector<KeyWatches::Id>> recreation_watches_;
  net::TimerQueue timers_;
  bool is_shutting_down_ = false;
};

}  // namespace tenure::backends::etcd
