#include "client/shared_lease.hpp"

#include <utility>

#include "client/session.hpp"

namespace tenure::detail {

// Separate from SharedLease, because the lease notifies its dependents through a strong reference:
// the last reference to SharedLease, whose destructor revokes the lease, stays with the user.
class SharedLease::LossSignal : public Dependent {
 public:
  explicit LossSignal(Session& session) : session_(session) {}

  void lease_lost() override {
    session_.callbacks().post([lost = lost_]() mutable { lost.request_stop(); });
  }
  [[nodiscard]] std::stop_token token() const { return lost_.get_token(); }

 private:
  Session& session_;
  std::stop_source lost_;
};

SharedLease::SharedLease(std::shared_ptr<Session> session, std::shared_ptr<LeaseRecord> record)
    : session_(std::move(session)),
      record_(std::move(record)),
      signal_(std::make_shared<LossSignal>(*session_)) {
  if (!record_->attach(*signal_)) {
    // The lease ended before it was attached: trigger lost() as if it had ended afterwards.
    signal_->lease_lost();
  }
}

SharedLease::~SharedLease() {
  if (session_->is_inherited()) {
    return;
  }
  record_->detach(*signal_);
  session_->end_lease(record_);
  // No thread waits for the reply, so the revocation is sent now instead of with the next request.
  session_->backend().parker().flush();
}

bool SharedLease::is_alive() const noexcept {
  if (session_->is_inherited() || record_->has_ended()) {
    return false;
  }
  if (!record_->is_valid(session_->clock().now())) {
    // Expired by the local clock, and not noticed by the renewal thread yet.
    session_->lose(record_);
    return false;
  }
  return true;
}

std::stop_token SharedLease::lost() const {
  if (session_->is_inherited()) {
    std::stop_source lost;
    lost.request_stop();
    return lost.get_token();
  }
  return signal_->token();
}

}  // namespace tenure::detail
