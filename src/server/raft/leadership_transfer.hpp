#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"
#include "server/raft/time.hpp"

namespace tenure::server::raft {

/// A voter that could take over the leadership.
struct TransferCandidate {
  MemberId id{};
  bool was_heard_lately = false;  ///< Within the last election timeout.
  Index match{};                  ///< Last entry that it is known to have.
};

/// The candidate that was heard lately and has most of the log; 0: there is no candidate.
[[nodiscard]] MemberId best_successor(std::span<const TransferCandidate> candidates);

/// A leadership transfer in progress, at most one: its target, its deadline and its callback.
/// Sends no message itself: the owner passes the transfer to the replica. Not thread safe.
class LeadershipTransfer {
 public:
  using Done = std::move_only_function<void(Result<void>)>;

  explicit LeadershipTransfer(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  [[nodiscard]] bool is_active() const noexcept { return transfer_.has_value(); }
  /// REQUIRES: !is_active().
  void begin(MemberId to, Done done, Time now);
  /// Calls `done` with the result, too, after the callback of begin(). REQUIRES: is_active().
  void also_notify(Done done);
  /// This member no longer leads: the transfer has succeeded. complete() reports it.
  void cease_to_lead();
  /// Ends the transfer and calls its callback if it has succeeded or its time is over.
  void complete(Time now);
  void fail(const Error& error);

  [[nodiscard]] std::optional<Time> deadline() const;

 private:
  struct Transfer {
    MemberId to{};
    Done done;
    Time until;
    bool has_succeeded = false;
  };

  void end(Result<void> result);

  const std::chrono::milliseconds timeout_;
  std::optional<Transfer> transfer_;
};

}  // namespace tenure::server::raft
