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

  void set_listener(Listener* listener) noexcept { listener_ = listener; }

  void acquire(AcquireRequest request, Backend::Done<Granted> done);
  void abandon(LeaseId lease, RequestId request);
  void release(const ReleaseRequest& request, Backend::Done<void> done);
  void downgrade(const DowngradeRequest& request, Backend::Done<void> done);
  void holders(std::string_view name, Backend::Done<std::vector<Holder>> done);
  void revoke(LeaseId lease, Backend::Done<void> done);

  /// Handles a lease that etcd reports as ended.
  void lease_lost(LeaseId lease);
  /// Fails all waits; their keys are deleted when the servers accept requests again.
  void fail_waits(const Error& why);
  /// Fails all waits and revokes all leases, as far as etcd is reachable.
  void shut_down();

 private:
  enum class Stage : std::uint8_t {
    starting,   ///< The lease is not granted yet.
    enqueuing,  ///< The creation of the key is in flight.
    waiting,
    held,
    leaving,  ///< The deletion of the key is in flight.
  };
  struct Entry {
    AcquireRequest request{};
    Backend::Done<Granted> done{};  ///< Callback of the acquire; null once it was called.
    Claim claim = LockMode::exclusive;
    QueueKey queue_key{};
    ListOptions list_options{};
    Stage stage = Stage::starting;
    bool is_cancelled = false;
    bool may_be_recreated =
        false;  ///< A duplicate of the creation may still arrive and create the key again.
    std::uint32_t attempts = 0;        ///< Attempts of a request that does not wait.
    std::int64_t listed_revision = 0;  ///< Revision of the latest list of the queue.
    std::size_t position = 0;          ///< Position on entry to the queue.
    std::string waits_for{};           ///< Key or folder that the entry waits for.
    KeyWatches::Id own_watch = 0;
    bool is_listing = false;
    bool needs_relist = false;  ///< The queue changed while the list was in flight.
    std::uint32_t count = 1;
    std::vector<RequestKey> reentries{};
  };
  /// Key or folder that entries of this client wait for.
  struct Target {
    KeyWatches::Id watch = 0;  ///< Watch of the target; 0 if it is a key of this client.
    KeyWatches::Events events = KeyWatches::Events::deletes;
    std::int64_t notified_revision = 0;  ///< Revision of the latest reported change.
    std::vector<RequestKey> waiting{};
  };
  /// State of a lock while this client has entries in its queue.
  struct Folder {
    absl::btree_map<std::int64_t, RequestKey>
        entries{};  ///< Entries of known revision, in queue order.
    /// Up to this revision there is no writer, because a reader of this client was granted there.
    std::int64_t no_writer_until = 0;
    /// Readers whose predecessors are unknown. They share one list; readers that arrive during it
    /// share the next one.
    std::vector<RequestKey> readers{};
    bool is_listing = false;
  };
  using Outcome = Result<TxnPart::Reply>;

  // locks.cpp: from the request to the grant.
  [[nodiscard]] Entry* find(const RequestKey& id);
  [[nodiscard]] bool reenter(const AcquireRequest& request, const std::string& folder,
                             const Claim& claim, Backend::Done<Granted>& done);
  [[nodiscard]] bool is_self_blocking(const Entry& entry);
  void submit(const RequestKey& id);
  void enqueue_done(const RequestKey& id, const Outcome& answer);
  [[nodiscard]] std::optional<WaitFor> own_predecessor(const Entry& entry) const;
  void revision_known(const RequestKey& id, std::int64_t revision);
  void try_done(const RequestKey& id, const Outcome& answer);
  /// Lists the queue for an entry. `notified_revision`: revision that this member has reported, so
  /// its local state is new enough; 0: linearizable read.
  void refresh(const RequestKey& id, std::int64_t notified_revision = 0);
  void listed(const RequestKey& id, const pb::RangeResponse& list, std::int64_t revision);
  void apply_admission(const RequestKey& id, const Admission& admission, bool has_successors);

  // locks_wait.cpp: predecessors and wake-ups.
  void wait_for(const RequestKey& id, const WaitFor& wait_target);
  void watch_target(const std::string& key, Target& target, std::int64_t from);
  void target_changed(const std::string& key, const Result<KeyWatches::Change>& what);
  void stop_waiting(const RequestKey& id, Entry& entry);
  void key_released(const std::string& key, std::int64_t notified_revision = 0);
  [[nodiscard]] std::vector<RequestKey> idle_waiters(const std::string& key);
  [[nodiscard]] bool should_list_together(const std::vector<RequestKey>& ids) const;
  void refresh_together(const std::string& folder, const std::vector<RequestKey>& ids,
                        std::int64_t since);
  void refresh_with_readers(const RequestKey& id);
  void refresh_readers(const std::string& folder);
  void listed_together(const std::string& folder, const std::vector<RequestKey>& ids,
                       const TxnPart::Reply& answer, const pb::RangeResponse& list);

  // locks.cpp
  void grant(const RequestKey& id, bool has_successors);

  // locks_release.cpp: release, cancellation, loss.
  static void complete(Entry& entry, Result<Granted> answer);
  void leave(const RequestKey& id, Error why);
  void remove_key(const RequestKey& id, Backend::Done<void> done);
  void listed_each(const std::vector<RequestKey>& ids, const Outcome& answer);
  static void removal_done(const Outcome& answer, Backend::Done<void> done);
  void remove_unconfirmed(LeaseId lease, const QueueKey& queue_key);
  void remove_any(QueueKey queue_key, std::move_only_function<void(const Outcome&)> answered);
  void watch_for_recreation(LeaseId lease, const QueueKey& queue_key, std::int64_t revision);
  void fail_entry(const RequestKey& id, const Error& why);
  /// Removes an entry from all tables. REQUIRES: the entry exists.
  [[nodiscard]] Entry extract(const RequestKey& id);
  void erase(const RequestKey& id);
  void watch_own(const RequestKey& id);
  void watch_own_later(const RequestKey& id);
  void own_key_changed(const RequestKey& id, const Result<KeyWatches::Change>& what);
  void own_key_lost(const RequestKey& id);
  [[nodiscard]] std::vector<RequestKey> entries_of(LeaseId lease) const;
  [[nodiscard]] std::vector<std::string> drop_lease(LeaseId lease, const Error& why);

  std::string root_;
  Dependencies dependencies_;
  Listener* listener_ = nullptr;
  absl::flat_hash_map<RequestKey, Entry> entries_;
  absl::flat_hash_map<std::string, RequestKey> by_key_;
  absl::flat_hash_map<LeaseId, std::vector<RequestKey>> by_lease_;
  /// Entry shared by each reentrant acquisition.
  absl::flat_hash_map<RequestKey, RequestKey> reentries_;
  absl::flat_hash_map<std::string, Target> targets_;
  absl::flat_hash_map<std::string, Folder> folders_;  ///< Locks with entries of known revision.
  /// Watches of deleted keys that a late duplicate may create again, by lease.
  absl::flat_hash_map<LeaseId, std::vector<KeyWatches::Id>> recreation_watches_;
  net::TimerQueue timers_;
  bool is_shutting_down_ = false;
};

}  // namespace tenure::backends::etcd
