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

/// Something to be done in one transaction with whatever else is at hand, and whom to tell.
struct TxnPart {
  struct Reply {
    std::span<const pb::ResponseOp* const> responses{};  ///< One for each operation.
    std::int64_t revision = 0;                           ///< Of the store, with what it changed.
    /// It was sent before, and nobody knows what became of that.
    bool is_retry = false;
  };

  /// Ranges, and transactions of their own. At least one.
  std::vector<pb::RequestOp> operations{};
  std::string folder{};  ///< Of the lock that it is about.
  /// It makes a key there. What one transaction makes has one revision, so no two of its keys may
  /// be in one folder: nobody could say who came first.
  bool creates_key = false;
  /// It removes one. Whoever asks next must not be told that it is still there.
  bool removes_key = false;
  /// So it waits for those that remove and were added before.
  bool after_removals = false;
  std::move_only_function<void(const Result<Reply>&)> on_reply{};

  /// Somebody of ours waits for what it does: it does not wait for those that are on their way.
  bool is_urgent = false;
  /// It stays though we are refused, until somebody lets us in again.
  bool survives_rejection = false;

  // The convoy's own.
  bool is_retry = false;
  bool must_go_alone = false;  ///< One of those it was with was refused.
  bool was_deferred = false;   ///< It could not go with others of its folder.
  std::uint64_t sequence = 0;  ///< Of one that removes; of others, the last of those before it.
};

/// Carries parts to the store, as many as are at hand in one transaction: etcd's work is for the
/// most part by request, not by what is in it. While some are on their way, the next ones gather.
/// A part whose answer is lost goes again on the next connection: whoever makes it sees to it that
/// it does no harm twice. All on the loop's thread.
class TxnBatcher {
 public:
  static constexpr std::size_t parts_max = 64;          ///< Of a transaction.
  static constexpr std::size_t operations_max = 96;     ///< Likewise; etcd takes 128, with depth.
  static constexpr std::size_t bytes_max = 256 * 1024;  ///< Likewise; etcd takes 1.5 MiB.
  /// Transactions on their way: full ones, and with those that cannot be together or are awaited.
  /// Else it is one: two halves of what there is to do take longer than the whole.
  static constexpr std::size_t write_batches_max = 16;
  static constexpr std::size_t skipped_max = 16;  ///< Parts that are passed over for one.

  TxnBatcher(boost::asio::io_context& loop, std::shared_ptr<Connection> connection)
      : loop_(loop), connection_(std::move(connection)), delay_timer_(loop) {}
  TxnBatcher(const TxnBatcher&) = delete;
  TxnBatcher& operator=(const TxnBatcher&) = delete;
  ~TxnBatcher() = default;

  /// It leaves at the end of what the loop is doing, with what was added meanwhile; or later.
  void add(TxnPart part);
  /// Sends what may leave.
  void flush();
  /// We are refused: what is not on its way fails, but for what outlives that.
  void fail_pending(const Error& why);
  /// All of it.
  void fail_all(const Error& why);
  [[nodiscard]] bool is_idle() const {
    return writes_.empty() && reads_.empty() && in_flight_ == 0;
  }

 private:
  using Batch = std::vector<TxnPart>;

  [[nodiscard]] Batch take_batch(std::deque<TxnPart>& from);
  [[nodiscard]] bool can_write();
  /// Do those to be written wait for more?
  [[nodiscard]] bool is_delaying();
  /// May it leave, with those that remove up to this number and are in the same transaction?
  [[nodiscard]] bool is_ready(const TxnPart& part, std::uint64_t removing) const;
  void send(Batch batch, bool is_write);
  void completed(Batch batch, const grpc::Status& status, const pb::TxnResponse& response);
  void retry_or_fail(Batch batch, const Failure& failure);
  void forget_removal(const TxnPart& part);
  /// Those who make keys are on their way, or are not any more.
  void count_creates(const Batch& batch, std::int32_t by);

  boost::asio::io_context& loop_;
  std::shared_ptr<Connection> connection_;
  std::deque<TxnPart> writes_;
  std::deque<TxnPart> reads_;
  std::size_t in_flight_ = 0;
  std::size_t writes_in_flight_ = 0;  ///< Of those.
  std::size_t urgent_ = 0;            ///< Of those that have not left.
  bool is_flush_due_ = false;
  BatchDelay delay_;
  boost::asio::steady_timer delay_timer_;
  bool is_delay_timer_set_ = false;
  std::uint64_t last_removal_ = 0;
  /// How many keys are being made, by their folder.
  absl::flat_hash_map<std::string, std::int32_t> creates_;
  /// Removals by their folder that are not answered.
  absl::flat_hash_map<std::string, absl::btree_set<std::uint64_t>> removals_;
};

}  // namespace tenure::backends::etcd
