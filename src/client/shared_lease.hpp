#pragma once

#include <memory>
#include <stop_token>

#include "client/lease_record.hpp"

namespace tenure::detail {

class Session;

/// Shared state of the handles of a Lease. Revokes the lease when the last of them is destroyed.
class SharedLease {
 public:
  SharedLease(std::shared_ptr<Session> session, std::shared_ptr<LeaseRecord> record);
  SharedLease(const SharedLease&) = delete;
  SharedLease& operator=(const SharedLease&) = delete;
  ~SharedLease();

  [[nodiscard]] const std::shared_ptr<LeaseRecord>& record() const noexcept { return record_; }
  [[nodiscard]] Session& session() const noexcept { return *session_; }
  [[nodiscard]] bool is_alive() const noexcept;
  [[nodiscard]] std::stop_token lost() const;

 private:
  /// Dependent of the lease that triggers lost().
  class LossSignal;

  std::shared_ptr<Session> session_;
  std::shared_ptr<LeaseRecord> record_;
  std::shared_ptr<LossSignal> signal_;
};

}  // namespace tenure::detail
