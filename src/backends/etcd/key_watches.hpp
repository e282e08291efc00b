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

  enum class Of : std::uint8_t { deletes, changes };
  enum class Seen : std::uint8_t {
    gone,
    changed,    ///< Of several keys: perhaps.
    forgotten,  ///< Nobody knows what happened since: look. It has ended.
  };
  /// An error is the last call.
  using Told = std::move_only_function<void(const Result<Seen>&)>;

  struct What {
    std::string key{};
    std::string end{};      ///< Empty: this key alone; else all up to this one.
    std::int64_t from = 0;  ///< The first revision to tell.
    Of of = Of::deletes;
  };

  explicit KeyWatches(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)), self_(std::make_shared<KeyWatches*>(this)) {}
  KeyWatches(const KeyWatches&) = delete;
  KeyWatches& operator=(const KeyWatches&) = delete;
  ~KeyWatches() = default;

  [[nodiscard]] Id add(What what, Told told);
  /// It is told nothing any more. 0 is none.
  void remove(Id id);
  /// The revision up to which it was told; 0 if it is over.
  [[nodiscard]] std::int64_t reached(Id id) const;
  void clear();

  void up();
  void down();

  /// How often somebody was told something.
  [[nodiscard]] std::uint64_t told() const noexcept { return told_; }

 private:
  class Stream;
  struct Watch {
    What what{};
    Told told{};
    std::int64_t number = -1;  ///< What etcd calls it, when it has said so.
    bool is_spent = false;     ///< The key is gone: if keys are unique, it will not be heard again.
  };

  void create(Id id);
  void received(const pb::WatchResponse& response);
  void created(const pb::WatchResponse& response);
  void canceled(Id id, const pb::WatchResponse& response);
  void happened(Id id, const pb::WatchResponse& response);
  /// What happened before it began.
  void catch_up(Id id);
  void caught_up(Id id, const pb::RangeResponse& response);
  void tell(Id id, Seen seen, std::int64_t revision);
  void end(Id id, const std::optional<Verdict>& why);
  void ended(const grpc::Status& status);
  void cancel(std::int64_t number);
  void begin_anew();

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<KeyWatches*> self_;  ///< For streams that may outlive us.
  std::shared_ptr<Stream> stream_;
  Id last_ = 0;
  absl::btree_map<Id, Watch> watches_;
  std::deque<Id> asked_;  ///< For, and not created yet, in their order.
  absl::flat_hash_map<std::int64_t, Id> by_number_;
  std::size_t spent_ = 0;  ///< At etcd, of no use, and not cancelled.
  std::uint64_t told_ = 0;
};

}  // namespace tenure::backends::etcd
