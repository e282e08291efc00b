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
#include "backends/etcd/convoy.hpp"
#include "backends/etcd/key_watches.hpp"
#include "backends/etcd/leases.hpp"
#include "backends/etcd/queue.hpp"
#include "backends/etcd/requests.hpp"
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
  struct Rooms {
    Convoy& convoy;
    KeyWatches& watches;
    Leases& leases;
    Connection& connection;
  };

  Locks(boost::asio::io_context& loop, std::string root, Rooms rooms);
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() = default;

  void listen(Listener* listener) noexcept { listener_ = listener; }

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
  void end();

 private:
  enum class Stage : std::uint8_t {
    starting,  ///< Its lease is not granted yet.
    asked,     ///< Its key is on its way.
    waiting,
    held,
    leaving,  ///< The end of its key is on its way.
  };
  struct Place {
    AcquireRequest request{};
    Backend::Done<Granted> done{};  ///< Null: told.
    Claim claim = LockMode::exclusive;
    Spot spot{};
    View view{};
    Stage stage = Stage::starting;
    bool is_called_off = false;
    bool may_come_late = false;  ///< A copy of its question is out, which would make the key again.
    std::uint32_t tries = 0;     ///< Of one that does not wait.
    std::int64_t seen = 0;       ///< Revision of the last list.
    std::size_t position = 0;    ///< On entry.
    std::string behind{};        ///< Key, or folder, that it waits for.
    KeyWatches::Id own_watch = 0;
    bool is_looking = false;
    bool is_stale = false;  ///< Something happened since it began to look.
    std::uint32_t count = 1;
    std::vector<RequestKey> reentries{};
  };
  /// A key that some of ours wait for, or a folder.
  struct Target {
    KeyWatches::Id watch = 0;  ///< 0: it is ours.
    KeyWatches::Of of = KeyWatches::Of::deletes;
    std::int64_t told = 0;  ///< Revision of the last that was told.
    std::vector<RequestKey> waiting{};
  };
  /// What we know of a lock, while we have places there.
  struct Folder {
    absl::btree_map<std::int64_t, RequestKey>
        places{};  ///< Whose revision is known, in their order.
    /// One of ours read there, so until this revision there is no writer, nor will be.
    std::int64_t no_writer_until = 0;
    /// Readers that do not know yet whether one is before them. They look together, and those who
    /// come meanwhile look next.
    std::vector<RequestKey> readers{};
    bool is_looking = false;
  };
  using Answer = Result<Part::Answer>;

  // locks.cpp: from the question to the grant
  [[nodiscard]] Place* find(const RequestKey& id);
  [[nodiscard]] bool reenter(const AcquireRequest& request, const std::string& folder,
                             const Claim& claim, Backend::Done<Granted>& done);
  [[nodiscard]] bool waits_for_itself(const Place& place);
  void ask(const RequestKey& id);
  void join_answered(const RequestKey& id, const Answer& answer);
  [[nodiscard]] std::optional<Behind> one_of_ours_before(const Place& place) const;
  void place_known(const RequestKey& id, std::int64_t revision);
  void try_answered(const RequestKey& id, const Answer& answer);
  /// `told`: by this member, of something at this revision; so what it knows itself is new enough.
  /// 0: what all agree on.
  void look(const RequestKey& id, std::int64_t told = 0);
  void seen(const RequestKey& id, const pb::RangeResponse& list, std::int64_t revision);
  void decide(const RequestKey& id, const Turn& turn, bool is_anybody_behind);

  // locks_wait.cpp: behind whom, and until when
  void wait_behind(const RequestKey& id, const Behind& behind);
  void watch_target(const std::string& key, Target& target, std::int64_t from);
  void target_told(const std::string& key, const Result<KeyWatches::Seen>& what);
  void unfollow(const RequestKey& id, Place& place);
  void key_gone(const std::string& key, std::int64_t told = 0);
  [[nodiscard]] std::vector<RequestKey> lookers(const std::string& key);
  [[nodiscard]] bool look_together(const std::vector<RequestKey>& ids) const;
  void look_all(const std::string& folder, const std::vector<RequestKey>& ids, std::int64_t since);
  void look_with_readers(const RequestKey& id);
  void look_at_readers(const std::string& folder);
  void all_seen(const std::string& folder, const std::vector<RequestKey>& ids,
                const Part::Answer& answer, const pb::RangeResponse& list);

  // locks.cpp
  void grant(const RequestKey& id, bool is_anybody_behind);

  // locks_leave.cpp: from there to the end
  static void settle(Place& place, Result<Granted> answer);
  void leave(const RequestKey& id, Error why);
  void remove_key(const RequestKey& id, Backend::Done<void> done);
  void each_seen(const std::vector<RequestKey>& ids, const Answer& answer);
  static void removed(const Answer& answer, Backend::Done<void> done);
  void sweep(LeaseId lease, const Spot& spot);
  void remove_any(Spot spot, std::move_only_function<void(const Answer&)> answered);
  void watch_for_late(LeaseId lease, const Spot& spot, std::int64_t revision);
  void give_up(const RequestKey& id, const Error& why);
  /// Out of all tables. REQUIRES: it is there.
  [[nodiscard]] Place take(const RequestKey& id);
  void erase(const RequestKey& id);
  void watch_own(const RequestKey& id);
  void watch_own_soon(const RequestKey& id);
  void own_told(const RequestKey& id, const Result<KeyWatches::Seen>& what);
  void own_gone(const RequestKey& id);
  [[nodiscard]] std::vector<RequestKey> places_of(LeaseId lease) const;
  [[nodiscard]] std::vector<std::string> drop(LeaseId lease, const Error& why);

  std::string root_;
  Rooms rooms_;
  Listener* listener_ = nullptr;
  absl::flat_hash_map<RequestKey, Place> places_;
  absl::flat_hash_map<std::string, RequestKey> by_key_;
  absl::flat_hash_map<LeaseId, std::vector<RequestKey>> by_lease_;
  absl::flat_hash_map<RequestKey, RequestKey> reentries_;  ///< To the place that they share.
  absl::flat_hash_map<std::string, Target> targets_;
  absl::flat_hash_map<std::string, Folder> folders_;  ///< With places of a known revision.
  /// Of keys that a late question may make again, by their lease.
  absl::flat_hash_map<LeaseId, std::vector<KeyWatches::Id>> late_;
  net::TimerQueue timers_;
  bool is_ending_ = false;
};

}  // namespace tenure::backends::etcd
