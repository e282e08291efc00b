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

/// Our places in the queues of locks: each is a key. Who has to wait watches the one before him and
/// nobody else, so that one who leaves wakes one; if that one is ours, he is not even watched: what
/// removes his key says in the same transaction who is next.
///
/// Who came before never comes back, and who comes later has a larger revision: so it is always
/// right to wait for one of those before, and to look for the others when he is gone. All on the
/// loop's thread.
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

  /// etcd says that it has ended.
  void lease_lost(LeaseId lease);
  /// Nobody waits any more; what is in the store is removed when that is possible.
  void fail_waits(const Error& why);
  /// Ends all waits and all leases, as far as etcd can be told.
  void shut_down();

 private:
  enum class Stage : std::uint8_t {
    starting,   ///< Its lease is not granted yet.
    enqueuing,  ///< Its key is on its way.
    waiting,
    held,
    leaving,  ///< The end of its key is on its way.
  };
  struct Entry {
    AcquireRequest request{};
    Backend::Done<Granted> done{};  ///< Null: told.
    Claim claim = LockMode::exclusive;
    QueueKey queue_key{};
    ListOptions list_options{};
    Stage stage = Stage::starting;
    bool is_cancelled = false;
    bool may_be_recreated =
        false;                   ///< A copy of its question is out, which would make the key again.
    std::uint32_t attempts = 0;  ///< Of one that does not wait.
    std::int64_t listed_revision = 0;  ///< Revision of the last list.
    std::size_t position = 0;          ///< On entry.
    std::string waits_for{};           ///< Key, or folder, that it waits for.
    KeyWatches::Id own_watch = 0;
    bool is_listing = false;
    bool needs_relist = false;  ///< Something happened since it began to look.
    std::uint32_t count = 1;
    std::vector<RequestKey> reentries{};
  };
  /// A key that some of ours wait for, or a folder.
  struct Target {
    KeyWatches::Id watch = 0;  ///< 0: it is ours.
    KeyWatches::Events events = KeyWatches::Events::deletes;
    std::int64_t notified_revision = 0;  ///< Revision of the last that was told.
    std::vector<RequestKey> waiting{};
  };
  /// What we know of a lock, while we have places there.
  struct Folder {
    absl::btree_map<std::int64_t, RequestKey>
        entries{};  ///< Whose revision is known, in their order.
    /// One of ours read there, so until this revision there is no writer, nor will be.
    std::int64_t no_writer_until = 0;
    /// Readers that do not know yet whether one is before them. They look together, and those who
    /// come meanwhile look next.
    std::vector<RequestKey> readers{};
    bool is_listing = false;
  };
  using Outcome = Result<TxnPart::Reply>;

  // locks.cpp: from the question to the grant
  [[nodiscard]] Entry* find(const RequestKey& id);
  [[nodiscard]] bool reenter(const AcquireRequest& request, const std::string& folder,
                             const Claim& claim, Backend::Done<Granted>& done);
  [[nodiscard]] bool is_self_blocking(const Entry& entry);
  void submit(const RequestKey& id);
  void enqueue_done(const RequestKey& id, const Outcome& answer);
  [[nodiscard]] std::optional<WaitFor> own_predecessor(const Entry& entry) const;
  void revision_known(const RequestKey& id, std::int64_t revision);
  void try_done(const RequestKey& id, const Outcome& answer);
  /// `told`: by this member, of something at this revision; so what it knows itself is new enough.
  /// 0: what all agree on.
  void refresh(const RequestKey& id, std::int64_t told = 0);
  void listed(const RequestKey& id, const pb::RangeResponse& list, std::int64_t revision);
  void apply_admission(const RequestKey& id, const Admission& admission, bool has_successors);

  // locks_wait.cpp: behind whom, and until when
  void wait_for(const RequestKey& id, const WaitFor& wait_target);
  void watch_target(const std::string& key, Target& target, std::int64_t from);
  void target_changed(const std::string& key, const Result<KeyWatches::Change>& what);
  void stop_waiting(const RequestKey& id, Entry& entry);
  void key_released(const std::string& key, std::int64_t told = 0);
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

  // locks_leave.cpp: from there to the end
  static void complete(Entry& entry, Result<Granted> answer);
  void leave(const RequestKey& id, Error why);
  void remove_key(const RequestKey& id, Backend::Done<void> done);
  void listed_each(const std::vector<RequestKey>& ids, const Outcome& answer);
  static void removal_done(const Outcome& answer, Backend::Done<void> done);
  void remove_unconfirmed(LeaseId lease, const QueueKey& queue_key);
  void remove_any(QueueKey queue_key, std::move_only_function<void(const Outcome&)> answered);
  void watch_for_recreation(LeaseId lease, const QueueKey& queue_key, std::int64_t revision);
  void fail_entry(const RequestKey& id, const Error& why);
  /// Out of all tables. REQUIRES: it is there.
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
  absl::flat_hash_map<RequestKey, RequestKey> reentries_;  ///< To the place that they share.
  absl::flat_hash_map<std::string, Target> targets_;
  absl::flat_hash_map<std::string, Folder> folders_;  ///< With places of a known revision.
  /// Of keys that a late question may make again, by their lease.
  absl::flat_hash_map<LeaseId, std::vector<KeyWatches::Id>> recreation_watches_;
  net::TimerQueue timers_;
  bool is_shutting_down_ = false;
};

}  // namespace tenure::backends::etcd
