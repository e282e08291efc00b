#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <tenure/error.hpp>

#include "backends/etcd/batch_delay.hpp"
#include "backends/etcd/connection.hpp"
#include "backends/etcd/etcd.pb.h"

namespace tenure::backends::etcd {

/// Sub-transaction of a batch: operations that etcd executes atomically, and their completion.
struct TxnPart {
  /// Result of a part.
  struct Reply {
    /// Responses, one for each operation.
    std::span<const pb::ResponseOp* const> responses{};
    /// Revision of the store after the transaction.
    std::int64_t revision = 0;
    /// An earlier copy was sent whose outcome is unknown.
    bool is_retry = false;
  };

  /// Range requests and nested transactions. At least one.
  std::vector<pb::RequestOp> operations{};
  /// Key prefix of the lock concerned.
  std::string folder{};
  /// Creates a key in the folder. One transaction has one revision, and the revision orders the
  /// queue, so a batch contains at most one creation per folder.
  bool creates_key = false;
  /// Deletes a key in the folder. Later parts of the same folder must see the deletion.
  bool removes_key = false;
  /// Waits for the deletions in the same folder that were added before.
  bool after_removals = false;
  std::move_only_function<void(const Result<Reply>&)> on_reply{};

  /// A local waiter depends on the reply, so the part is sent while other batches are in flight.
  bool is_urgent = false;
  /// Stays queued while the server rejects this client, and is sent after the next successful
  /// handshake.
  bool survives_rejection = false;

  // State of the batcher.
  bool is_retry = false;
  /// Sent alone, because a batch that contained it was rejected.
  bool must_go_alone = false;
  /// Left out of a batch because of another creation in its folder.
  bool was_deferred = false;
  /// Sequence number of a deletion; for other parts, of the last deletion before it.
  std::uint64_t sequence = 0;
};

/// Transaction batcher. etcd's cost is mostly per request, not per operation, so all queued parts
/// share one transaction; parts that arrive while batches are in flight form the next batch (group
/// commit).
///
/// A part whose reply is lost is sent again on the next connection, so every part must be
/// idempotent. Parts of one folder keep their order where it matters: see after_removals.
///
/// Not thread safe: all calls run on the event loop's thread.
class TxnBatcher {
 public:
  /// Maximum parts of a batch.
  static constexpr std::size_t parts_max = 64;
  /// Maximum operations of a batch; etcd accepts 128, nested ones included.
  static constexpr std::size_t operations_max = 96;
  /// Maximum size of a batch; etcd accepts 1.5 MiB.
  static constexpr std::size_t bytes_max = std::size_t{256} * 1024;
  /// Maximum write batches in flight: full ones, and batches with urgent or deferred parts.
  /// Otherwise one batch at a time, because two half-full batches take longer than a full one.
  static constexpr std::size_t write_batches_max = 16;
  /// Maximum parts that a batch skips because they must wait.
  static constexpr std::size_t skipped_max = 16;

  TxnBatcher(boost::asio::io_context& loop, std::shared_ptr<Connection> connection)
      : loop_(loop), connection_(std::move(connection)), delay_timer_(loop) {}
  TxnBatcher(const TxnBatcher&) = delete;
  TxnBatcher& operator=(const TxnBatcher&) = delete;
  ~TxnBatcher() = default;

  /// Queues a part. It is sent after the current handler, together with others, or later.
  void add(TxnPart part);
  /// Sends all parts that need not wait.
  void flush();
  /// What happens to the parts that survive a rejection.
  enum class Survivors : std::uint8_t { keep, fail };
  /// Fails the queued parts.
  void fail_all(const Error& why, Survivors survivors);
  [[nodiscard]] bool is_idle() const {
    return writes_.empty() && reads_.empty() && in_flight_ == 0;
  }

 private:
  using Batch = std::vector<TxnPart>;

  /// Takes the parts of the next batch from a queue; empty if all must wait.
  [[nodiscard]] Batch take_batch(std::deque<TxnPart>& from);
  /// Whether another write batch may be sent now.
  [[nodiscard]] bool can_write();
  /// Whether the write queue waits for more parts, see BatchDelay.
  [[nodiscard]] bool is_delaying();
  /// Whether a part may be sent in a batch that contains the deletions up to this number.
  [[nodiscard]] bool is_ready(const TxnPart& part, std::uint64_t removing) const;
  /// Sends a batch as one transaction.
  void send(Batch batch, bool is_write);
  /// Distributes the reply of a batch to its parts.
  void completed(Batch batch, const grpc::Status& status, const pb::TxnResponse& response);
  /// Requeues the parts of a failed batch, or fails a single rejected part.
  void retry_or_fail(Batch batch, const Failure& failure);
  /// Forgets a deletion that has completed.
  void forget_removal(const TxnPart& part);
  /// Counts the creations in flight by folder.
  void count_creates(const Batch& batch, std::int32_t by);

  boost::asio::io_context& loop_;
  std::shared_ptr<Connection> connection_;
  std::deque<TxnPart> writes_;
  std::deque<TxnPart> reads_;
  std::size_t in_flight_ = 0;
  /// Write batches among the batches in flight.
  std::size_t writes_in_flight_ = 0;
  /// Urgent parts in the queues.
  std::size_t urgent_ = 0;
  bool is_flush_due_ = false;
  BatchDelay delay_;
  boost::asio::steady_timer delay_timer_;
  bool is_delay_timer_set_ = false;
  std::uint64_t last_removal_ = 0;
  /// Creations in flight, by folder.
  absl::flat_hash_map<std::string, std::int32_t> creates_;
  /// Deletions without a reply, by folder.
  absl::flat_hash_map<std::string, absl::btree_set<std::uint64_t>> removals_;
};

}  // namespace tenure::backends::etcd
