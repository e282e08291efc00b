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
#include "client/lease_keeper.hpp"
#include "client/lease_pool.hpp"
#include "client/lease_record.hpp"
#include "client/notifier.hpp"
#include "sys/boot_clock.hpp"
#include "sys/fork.hpp"
#include "sys/latch.hpp"

namespace tenure::detail {

/// What stands behind a Client: the backend, the leases, and the two threads. Lives as long as a
/// handle of any kind: client, lock, guard, watch, or a coroutine that waits. Thread safe.
///
/// In a child of fork() the session is inherited: its threads do not exist there, its connections
/// are closed, and everything it held is the parent's. There it answers everything with an error,
/// and is never destroyed.
class Session final : public backends::Listener, public LeaseKeeper::Owner {
 public:
  using Record = std::shared_ptr<LeaseRecord>;

  Session(std::unique_ptr<backends::Backend> backend, ConnectOptions options,
          sys::Clock& clock = sys::real_clock());
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override;

  /// In a child of fork() one that refuses everything.
  [[nodiscard]] backends::Backend& backend() noexcept {
    return is_inherited() ? backends::inherited_backend() : *backend_;
  }
  /// Whether this process is a child of the one that connected.
  [[nodiscard]] bool is_inherited() const noexcept { return epoch_ != sys::ForkEpoch::now(); }
  [[nodiscard]] const backends::Limits& limits() const noexcept { return limits_; }
  [[nodiscard]] sys::Clock& clock() noexcept { return clock_; }
  [[nodiscard]] Notifier& notifier() noexcept { return notifier_; }
  [[nodiscard]] LeaseKeeper& keeper() noexcept { return *keeper_; }
  [[nodiscard]] const std::string& owner() const noexcept { return options_.owner; }
  [[nodiscard]] const std::string& key_prefix() const noexcept { return options_.key_prefix; }
  [[nodiscard]] std::chrono::milliseconds request_timeout() const noexcept {
    return options_.request_timeout;
  }
  [[nodiscard]] bool is_connected() const noexcept { return is_connected_; }
  /// The last handle is gone: nothing new may be asked of the backend.
  [[nodiscard]] bool is_closing() const noexcept { return is_closing_; }
  [[nodiscard]] backends::RequestId fresh_request() noexcept {
    return backends::RequestId{last_request_.fetch_add(1, std::memory_order_relaxed) + 1};
  }
  /// On the clock that users know.
  [[nodiscard]] std::chrono::steady_clock::time_point steady(sys::BootTime time) const noexcept {
    return std::chrono::steady_clock::now() + (time - clock_.now());
  }

  /// A lease for one hold: one that lies idle, or a new one, which the service need not have
  /// confirmed yet.
  enum class Freshness : std::uint8_t { any, fresh };
  [[nodiscard]] Record take_lease(std::chrono::milliseconds ttl, int renewals_per_ttl,
                                  Freshness freshness);
  /// A new lease; `granted` is told what the service says.
  [[nodiscard]] Record new_lease(LeaseRecord::Terms terms, backends::Backend::Done<void> granted);
  /// Renews it now, for this ttl from then on if one is given, and waits for the answer.
  [[nodiscard]] Result<void> renew(const Record& lease,
                                   std::optional<std::chrono::milliseconds> ttl);
  /// The hold under it is over. `is_clean`: for sure, so that it may be used again.
  void free_lease(const Record& lease, bool is_clean);
  /// Ends it at the service too.
  void end_lease(const Record& lease);
  void end_lease(const Record& lease, backends::Backend::Done<void> done);
  /// It is lost, for ever; all that depends on it is told, and the service, in case it does not
  /// know. Once is enough, more does no harm.
  void lose(const Record& lease);
  void lose(const Record& lease, backends::Backend::Done<void> revoked);

  // backends::Listener
  void lease_lost(LeaseId lease) override;
  void hold_force_released(LeaseId lease, backends::RequestId acquired) override;
  void connection_changed(bool is_connected, std::string_view detail) override;

  // LeaseKeeper::Owner
  void lost(const Record& lease) override { lose(lease); }
  void at_risk(const Record& lease) override;
  [[nodiscard]] bool give_up(const Record& lease) override;

 private:
  [[nodiscard]] Record find(LeaseId lease);
  void forget(LeaseId lease);
  /// Its last reference must not be dropped by a thread that the session waits for.
  void let_go(std::shared_ptr<Dependent> dependent);

  const std::uint32_t epoch_ = sys::ForkEpoch::now();
  const ConnectOptions options_;
  sys::Clock& clock_;
  std::atomic<std::uint64_t> last_request_ = 0;
  std::atomic<bool> is_connected_ = false;
  std::atomic<bool> is_closing_ = false;
  LeasePool pool_;
  sys::Latch latch_;
  absl::flat_hash_map<LeaseId, Record> leases_ TENURE_GUARDED_BY(latch_);  ///< That live.

  // The backend goes first: what it still has to answer goes to all the rest.
  Notifier notifier_;
  std::unique_ptr<LeaseKeeper> keeper_;
  std::unique_ptr<backends::Backend> backend_;
  const backends::Limits limits_;
};

}  // namespace tenure::detail
