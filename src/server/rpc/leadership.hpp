#pragma once

#include <functional>
#include <memory>

#include <absl/container/flat_hash_set.h>

#include <tenure/error.hpp>

#include "grpc/status.hpp"
#include "server/store/store.hpp"

namespace tenure::server {

/// A call that needs the leader for as long as it lives.
class LeaderBoundCall {
 public:
  /// This member has ceased to lead, and the call is to end.
  virtual void on_leadership_lost() = 0;
  /// Keeps it alive; null: it is at its end.
  [[nodiscard]] virtual std::shared_ptr<LeaderBoundCall> keep_alive() = 0;

 protected:
  ~LeaderBoundCall() = default;
};

/// Sends those who ask here to the leader, if this member is not the one: with who leads in the
/// trailing metadata. When this member ceases to lead, ends at once what is under way, so that the
/// clients go on at the next leader. Of the store's thread.
class Leadership final : public Listener {
 public:
  explicit Leadership(Store& store) : store_(store) {}

  using Answer = std::move_only_function<void(grpc::Status)>;
  /// Calls `answer` with the status of this error, perhaps later. `unavailable` says who leads.
  void reject(const Error& error, Answer answer);
  /// The same for the status itself, of what this view shows.
  [[nodiscard]] grpc::Status with_leader(grpc::Status status, const LogPosition& log) const;

  [[nodiscard]] bool is_leader() const noexcept { return is_leader_; }
  /// The server stops: nobody is sent to us any more.
  void stop() noexcept { is_stopping_ = true; }

  void add(LeaderBoundCall& led) { calls_.insert(&led); }
  void remove(LeaderBoundCall& led) { calls_.erase(&led); }

  void role_changed(const LogPosition& log) override;

 private:
  Store& store_;
  absl::flat_hash_set<LeaderBoundCall*> calls_;
  bool is_leader_ = false;
  bool is_stopping_ = false;
};

}  // namespace tenure::server
