#pragma once

#include <functional>
#include <memory>

#include <absl/container/flat_hash_set.h>

#include <tenure/error.hpp>

#include "grpc/status.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// Call or stream that ends when this member loses leadership.
class LeaderBoundCall {
 public:
  /// Ends the call: this member is no longer the leader.
  virtual void on_leadership_lost() = 0;
  /// Shared ownership; null: the call is already being destroyed.
  /// A call is registered from its constructor to its destructor, so it may have no owner yet, or
  /// none any more.
  [[nodiscard]] virtual std::shared_ptr<LeaderBoundCall> keep_alive() = 0;

 protected:
  // Protected: calls are owned through grpc::Call, never through this interface.
  ~LeaderBoundCall() = default;
};

/// Redirects clients to the leader: UNAVAILABLE with the leader in the trailing metadata. When this
/// member loses leadership, it ends all calls in progress at once, so that clients continue at the
/// next leader. Store thread only.
///
/// The calls end in role_changed(), before the waiter registry fails their waits, so each client
/// gets one redirect instead of one error per wait.
class Leadership final : public Listener {
 public:
  explicit Leadership(Store& store) : store_(store) {}

  /// Receives the final status of a call, once.
  using Answer = std::move_only_function<void(grpc::Status)>;
  /// Calls `answer` with the status of the error, possibly later. `unavailable` names the leader,
  /// if known.
  void reject(const Error& error, Answer answer);
  /// Adds the leader in `log` to the trailing metadata of a status.
  [[nodiscard]] grpc::Status with_leader(grpc::Status status, const LogPosition& log) const;

  /// Role at the last change. It may be outdated; only a proposal or a linearizable read is proof.
  [[nodiscard]] bool is_leader() const noexcept { return is_leader_; }
  /// The server stops: this member no longer names itself as the leader.
  void stop() noexcept { is_stopping_ = true; }

  /// Registers a call to end on loss of leadership. REQUIRES: remove() before its destruction ends.
  void add(LeaderBoundCall& call) { calls_.insert(&call); }
  void remove(LeaderBoundCall& call) { calls_.erase(&call); }

  void role_changed(const LogPosition& log) override;

 private:
  Store& store_;
  /// Open calls, not owned.
  absl::flat_hash_set<LeaderBoundCall*> calls_;
  bool is_leader_ = false;
  bool is_stopping_ = false;
};

}  // namespace tenure::server
