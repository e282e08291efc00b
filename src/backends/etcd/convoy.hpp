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

#include "backends/etcd/connection.hpp"
#include "backends/etcd/etcd.pb.h"
#include "backends/etcd/muster.hpp"

namespace tenure::backends::etcd {

/// Something to be done in one transaction with whatever else is at hand, and whom to tell.
struct Part {
  struct Answer {
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
  bool makes = false;
  /// It removes one. Whoever asks next must not be told that it is still there.
  bool removes = false;
  /// So it waits for those that remove and were added before.
  bool follows_removals = false;
  std::move_only_function<void(const Result<Answer>&)> answered{};

  /// Somebody of ours waits for what it does: it does not wait for those that are on their way.
  bool is_awaited = false;
  /// It stays though we are refused, until somebody lets us in again.
  bool outlives_refusal = false;

  // The convoy's own.
  bool is_retry = false;
  bool is_alone = false;      ///< One of those it was with was refused.
  bool is_left_over = false;  ///< It could not go with others of its folder.
  std::uint64_t number = 0;   ///< Of one that removes; of others, the last of those before it.
};

/// Carries parts to the store, as many as are at hand in one transaction: etcd's work is for the
/// most part by request, not by what is in it. While some are on their way, the next ones gather.
/// A part whose answer is lost goes again on the next connection: whoever makes it sees to it that
/// it does no harm twice. All on the loop's thread.
class Convoy {
 public:
  static constexpr std::size_t parts_max = 64;          ///< Of a transaction.
  static constexpr std::size_t operations_max = 96;     ///< Likewise; etcd takes 128, with depth.
  static constexpr std::size_t bytes_max = 256 * 1024;  ///< Likewise; etcd takes 1.5 MiB.
  /// Transactions on their way: full ones, and with those that cannot be together or are awaited.
  /// Else it is one: two halves of what there is to do take longer than the whole.
  static constexpr std::size_t writes_at_once = 16;
  static constexpr std::size_t skipped_max = 16;  ///< Parts that are passed over for one.

  Convoy(boost::asio::io_context& loop, std::shared_ptr<Connection> connection)
      : loop_(loop), connection_(std::move(connection)), mustered_(loop) {}
  Convoy(const Convoy&) = delete;
  Convoy& operator=(const Convoy&) = delete;
  ~Convoy() = default;

  /// It leaves at the end of what the loop is doing, with what was added meanwhile; or later.
  void add(Part part);
  /// Sends what may leave.
  void flush();
  /// We are refused: what is not on its way fails, but for what outlives that.
  void fail_most(const Error& why);
  /// All of it.
  void fail_all(const Error& why);
  [[nodiscard]] bool is_idle() const { return writes_.empty() && reads_.empty() && flights_ == 0; }

 private:
  using Flight = std::vector<Part>;

  [[nodiscard]] Flight take(std::deque<Part>& from);
  [[nodiscard]] bool may_write();
  /// Do those to be written wait for more?
  [[nodiscard]] bool is_mustering();
  /// May it leave, with those that remove up to this number and are in the same transaction?
  [[nodiscard]] bool is_ready(const Part& part, std::uint64_t removing) const;
  void send(Flight flight, bool is_write);
  void landed(Flight flight, const grpc::Status& status, const pb::TxnResponse& response);
  void refused(Flight flight, const Verdict& verdict);
  void forget_removal(const Part& part);
  /// Those who make keys are on their way, or are not any more.
  void count_makers(const Flight& flight, std::int32_t by);

  boost::asio::io_context& loop_;
  std::shared_ptr<Connection> connection_;
  std::deque<Part> writes_;
  std::deque<Part> reads_;
  std::size_t flights_ = 0;
  std::size_t writing_ = 0;  ///< Of those.
  std::size_t awaited_ = 0;  ///< Of those that have not left.
  bool is_flush_due_ = false;
  Muster muster_;
  boost::asio::steady_timer mustered_;
  bool is_timer_set_ = false;
  std::uint64_t last_removal_ = 0;
  /// How many keys are being made, by their folder.
  absl::flat_hash_map<std::string, std::int32_t> makers_;
  /// Removals by their folder that are not answered.
  absl::flat_hash_map<std::string, absl::btree_set<std::uint64_t>> removals_;
};

}  // namespace tenure::backends::etcd
