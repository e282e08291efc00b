#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <tenure/error.hpp>

#include "backends/etcd/connection.hpp"
#include "backends/etcd/etcd.pb.h"
#include "backends/rpc/message_stream.hpp"

namespace tenure::backends::etcd {

/// Watches of single keys and prefixes, multiplexed over one stream; they continue on the next
/// connection without a gap.
///
/// A watch never starts in the past: etcd synchronises such watches only every 100 ms and delivers
/// nothing until then. A watch starts at the current revision instead. If that is later than
/// requested, one read of the key detects the changes in between.
///
/// Not thread safe: all calls run on the event loop's thread.
class KeyWatches {
 public:
  /// Id of a watch; 0: none.
  using Id = std::uint64_t;

  /// Events that end a wait: deletions only, or every change.
  enum class Events : std::uint8_t { deletes, changes };
  /// Reported change of a watched key or range.
  enum class Change : std::uint8_t {
    deleted,
    /// Created or modified; for a prefix, possibly.
    changed,
    /// Changes may have been missed, so the caller must read the key. The watch has ended.
    unknown,
  };
  /// Change callback; an error is its last call.
  using Callback = std::move_only_function<void(const Result<Change>&)>;

  /// Key or range to watch, and where to start.
  struct Target {
    std::string key{};
    /// End of the range; empty: a single key.
    std::string end{};
    /// First revision to report.
    std::int64_t from = 0;
    Events events = Events::deletes;
  };

  explicit KeyWatches(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  KeyWatches(const KeyWatches&) = delete;
  KeyWatches& operator=(const KeyWatches&) = delete;
  ~KeyWatches() = default;

  /// Starts a watch.
  [[nodiscard]] Id add(Target target, Callback callback);
  /// Cancels a watch; no callback runs afterwards. 0 has no effect.
  void remove(Id id);
  /// Revision up to which changes were reported; 0 if the watch has ended.
  [[nodiscard]] std::int64_t delivered_revision(Id id) const;
  /// Removes all watches and closes the stream.
  void clear();

  /// Creates all watches on the new connection.
  void connected();
  /// Drops the stream; the watches continue on the next connection.
  void disconnected();

  /// Number of notifications so far.
  [[nodiscard]] std::uint64_t notifications() const noexcept { return notifications_; }

 private:
  struct Watch {
    Target target{};
    Callback callback{};
    /// Watch id at etcd; -1 until the server has created it.
    std::int64_t watch_id = -1;
    /// The key was deleted. Keys are unique, so no further event can follow.
    bool is_spent = false;
  };

  void create(Id id);
  void received(const pb::WatchResponse& response);
  void created(const pb::WatchResponse& response);
  void canceled(Id id, const pb::WatchResponse& response);
  void handle_events(Id id, const pb::WatchResponse& response);
  /// Reads the key for changes before the watch was created.
  void check_missed_changes(Id id);
  void missed_changes_checked(Id id, const pb::RangeResponse& response);
  /// Reports a change and advances the start revision.
  void notify(Id id, Change change, std::int64_t revision);
  void end(Id id, const std::optional<Failure>& why);
  void ended(const grpc::Status& status);
  void cancel(std::int64_t watch_id);
  /// Opens the stream again, which drops spent watches at etcd.
  void restart();

  std::shared_ptr<Connection> connection_;
  /// Watch stream of the connection; null until the first watch needs it.
  std::shared_ptr<MessageStream<pb::WatchResponse>> stream_;
  Id last_ = 0;
  absl::btree_map<Id, Watch> watches_;
  /// Watches requested and not yet created, in request order.
  std::deque<Id> requested_;
  absl::flat_hash_map<std::int64_t, Id> by_watch_id_;
  /// Spent watches that are still registered at etcd.
  std::size_t spent_ = 0;
  std::uint64_t notifications_ = 0;
};

}  // namespace tenure::backends::etcd
