#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include <tenure/client/options.hpp>
#include <tenure/error.hpp>
#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/inherited_backend.hpp"
#include "client/callback_executor.hpp"
#include "client/lease_pool.hpp"
#include "client/lease_record.hpp"
#include "client/lease_renewer.hpp"
#include "sys/boot_clock.hpp"
#include "sys/fork.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

/// Implementation of Client: the backend, the leases, the renewal thread and the callback thread.
/// Lives as long as any handle: client, lock, guard, watch, or a suspended coroutine. Thread safe.
///
/// In a child of fork() the session is inherited: its threads do not exist there, its connections
/// are closed, and its locks belong to the parent. Every call then fails, and the session is never
/// destroyed.
class Session final : public backends::Listener, public LeaseRenewer::Listener {
 public:
  using Record = std::shared_ptr<LeaseRecord>;

  Session(std::unique_ptr<backends::Backend> backend, ConnectOptions options,
          sys::Clock& clock = sys::real_clock());
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override;

  /// In a child of fork(), a backend that rejects every call.
  [[nodiscard]] backends::Backend& backend() noexcept {
    return is_inherited() ? backends::inherited_backend() : *backend_;
  }
  /// Whether this process is a child of the one that connected.
  [[nodiscard]] bool is_inherited() const noexcept { return epoch_ != sys::ForkEpoch::now(); }
  [[nodiscard]] const backends::Limits& limits() const noexcept { return limits_; }
  [[nodiscard]] sys::Clock& clock() noexcept { return clock_; }
  [[nodiscard]] CallbackExecutor& callbacks() noexcept { return callbacks_; }
  [[nodiscard]] LeaseRenewer& renewer() noexcept { return *renewer_; }
  [[nodiscard]] const std::string& owner() const noexcept { return options_.owner; }
  [[nodiscard]] const std::string& key_prefix() const noexcept { return options_.key_prefix; }
  [[nodiscard]] std::chrono::milliseconds request_timeout() const noexcept {
    return options_.request_timeout;
  }
  /// Last report of the backend. Informational: a hold stays valid without a connection until its
  /// lease ends.
  [[nodiscard]] bool is_connected() const noexcept { return is_connected_; }
  /// The destructor is running: no new requests to the backend.
  [[nodiscard]] bool is_closing() const noexcept { return is_closing_; }
  /// Request id that this session has not used before. Ids start at 1, because 0 means none.
  /// Relaxed order suffices: the ids must differ, and their order has no meaning.
  [[nodiscard]] backends::RequestId fresh_request() noexcept {
    return backends::RequestId{last_request_.fetch_add(1, std::memory_order_relaxed) + 1};
  }
  /// Converts a time to the steady clock, which users see. The caller has to convert again for each
  /// use: the boot clock advances while the machine is suspended and the steady clock does not, so
  /// a stored result is too late after a suspension.
  [[nodiscard]] std::chrono::steady_clock::time_point steady(sys::BootTime time) const noexcept {
    return std::chrono::steady_clock::now() + (time - clock_.now());
  }

  /// Whether a pooled lease may be used. `fresh` is for the retry after a pooled lease proved to be
  /// expired.
  enum class Freshness : std::uint8_t { any, fresh };
  /// A lease for one hold: from the pool, or a new one, which need not be confirmed by the service
  /// yet.
  [[nodiscard]] Record take_lease(std::chrono::milliseconds ttl, int renewals_per_ttl,
                                  Freshness freshness);
  /// A new lease. `granted` receives the reply of the service. Returns before the service has
  /// confirmed the lease: the first acquire follows at once and needs no extra round trip. A
  /// rejection ends the lease as lost and is recorded in LeaseRecord::refused().
  [[nodiscard]] Record new_lease(LeaseRecord::Terms terms, backends::Backend::Done<void> granted);
  /// Renews the lease now, with a new TTL if there is one, and waits for the reply.
  [[nodiscard]] Result<void> renew(const Record& lease,
                                   std::optional<std::chrono::milliseconds> ttl);
  /// Frees the lease of a hold that has ended. `is_clean`: the service has confirmed the end of the
  /// hold, so the lease may be reused. Otherwise the service may still count a hold or a wait under
  /// the lease, and the next hold on it would appear as a self-deadlock; the lease is then revoked.
  void free_lease(const Record& lease, bool is_clean);
  /// Revokes the lease, also in the service. REQUIRES: no dependent is attached; lose() notifies
  /// them.
  void end_lease(
      const Record& lease, backends::Backend::Done<void> done = [](const Result<void>&) {});
  /// Leaves the lease to end after this time, also if the client is destroyed before. `done`: the
  /// service has confirmed that. REQUIRES: Capability::new_ttl.
  void leave_lease(const Record& lease, std::chrono::milliseconds ttl,
                   backends::Backend::Done<void> done);
  /// Ends the lease as lost: notifies its dependents, and revokes it in the service, which may
  /// still count it. Idempotent.
  void lose(
      const Record& lease, backends::Backend::Done<void> revoked = [](const Result<void>&) {});

  // backends::Listener
  //
  // Called on threads of the backend. A lease that has ended here is unknown, so late and repeated
  // reports are ignored.
  void lease_lost(LeaseId lease) override;
  void hold_force_released(LeaseId lease, backends::RequestId acquired) override;
  void connection_changed(bool is_connected, std::string_view detail) override;

  // LeaseRenewer::Listener
  //
  // Called on the renewal thread, or on a thread of the backend that delivers a renewal.
  void lost(const Record& lease) override { lose(lease); }
  void at_risk(const Record& lease) override;
  [[nodiscard]] bool retire_if_idle(const Record& lease) override;

 private:
  /// The lease with this id, or null if it has ended.
  [[nodiscard]] Record find(LeaseId lease);
  void forget(LeaseId lease);
  /// Drops a reference on the callback thread. It may be the last reference to the session, whose
  /// destructor waits for the other threads.
  void drop_later(std::shared_ptr<Dependent> dependent);

  /// Generation of the process that created the session; differs in a child of fork().
  const std::uint32_t epoch_ = sys::ForkEpoch::now();
  /// Options of connect(), with the default owner filled in.
  const ConnectOptions options_;
  sys::Clock& clock_;
  /// Last id that fresh_request() returned.
  std::atomic<std::uint64_t> last_request_ = 0;
  std::atomic<bool> is_connected_ = false;
  std::atomic<bool> is_closing_ = false;
  /// Idle leases for reuse.
  LeasePool pool_;
  /// Guards leases_ only. Held for a lookup, never during a call of the backend or of a dependent.
  sys::Latch latch_;
  absl::flat_hash_map<LeaseId, Record> leases_
      TENURE_GUARDED_BY(latch_);  ///< Leases that have not ended.

  // Order of destruction: the backend first, because its last callbacks use the other members.
  CallbackExecutor callbacks_;
  std::unique_ptr<LeaseRenewer> renewer_;
  std::unique_ptr<backends::Backend> backend_;
  const backends::Limits limits_;
};

}  // namespace tenure::detail
