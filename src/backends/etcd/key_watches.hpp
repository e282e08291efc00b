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

namespace tenure::backends::etcd {

/// Tells what becomes of keys, all over one stream, without a gap, and goes on on the next
/// connection. All on the loop's thread.
///
/// It does not ask for the past: etcd brings watches that begin there up to date only every 100 ms,
/// and until then they hear of nothing. A watch begins now, etcd says since which revision, and if
/// that is not the next one, the key itself is looked at for what happened in between.
class KeyWatches {
 public:
  using Id = std::uint64_t;  ///< 0: none.

  enum class Events : std::uint8_t { deletes, changes };
  enum class Change : std::uint8_t {
    deleted,
    changed,  ///< Of several keys: perhaps.
    unknown,  ///< Nobody knows what happened since: look. It has ended.
  };
  /// An error is the last call.
  using Callback = std::move_only_function<void(const Result<Change>&)>;

  struct Target {
    std::string key{};
    std::string end{};      ///< Empty: this key alone; else all up to this one.
    std::int64_t from = 0;  ///< The first revision to tell.
    Events events = Events::deletes;
  };

  explicit KeyWatches(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)), self_(std::make_shared<KeyWatches*>(this)) {}
  KeyWatches(const KeyWatches&) = delete;
  KeyWatches& operator=(const KeyWatches&) = delete;
  ~KeyWatches() = default;

  [[nodiscard]] Id add(Target target, Callback callback);
  /// It is told nothing any more. 0 is none.
  void remove(Id id);
  /// The revision up to which it was told; 0 if it is over.
  [[nodiscard]] std::int64_t delivered_revision(Id id) const;
  void clear();

  void connected();
  void disconnected();

  /// How often somebody was told something.
  [[nodiscard]] std::uint64_t notifications() const noexcept { return notifications_; }

 private:
  class Stream;
  struct Watch {
    Target target{};
    Callback callback{};
    std::int64_t watch_id = -1;  ///< What etcd calls it, when it has said so.
    bool is_spent = false;  ///< The key is gone: if keys are unique, it will not be heard again.
  };

  void create(Id id);
  void received(const pb::WatchResponse& response);
  void created(const pb::WatchResponse& response);
  void canceled(Id id, const pb::WatchResponse& response);
  void handle_events(Id id, const pb::WatchResponse& response);
  /// What happened before it began.
  void check_missed_changes(Id id);
  void missed_changes_checked(Id id, const pb::RangeResponse& response);
  void notify(Id id, Change change, std::int64_t revision);
  void end(Id id, const std::optional<Failure>& why);
  void ended(const grpc::Status& status);
  void cancel(std::int64_t watch_id);
  void restart();

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<KeyWatches*> self_;  ///< For streams that may outlive us.
  std::shared_ptr<Stream> stream_;
  Id last_ = 0;
  absl::btree_map<Id, Watch> watches_;
  std::deque<Id> requested_;  ///< For, and not created yet, in their order.
  absl::flat_hash_map<std::int64_t, Id> by_watch_id_;
  std::size_t spent_ = 0;  ///< At etcd, of no use, and not cancelled.
  std::uint64_t notifications_ = 0;
};

}  // namespace tenure::backends::etcd
