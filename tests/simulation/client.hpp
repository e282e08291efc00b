#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <tenure/fence.hpp>

#include "client/lease_record.hpp"
#include "core/command.hpp"
#include "core/outcome.hpp"
#include "simulation/checker.hpp"
#include "simulation/host_clock.hpp"
#include "simulation/network.hpp"
#include "simulation/protocol.hpp"

namespace tenure::simulation {

/// Storage behind the production fence, reached over the network.
struct Storage {
  Fence fence{};
};

/// Simulated client process: renews a lease with the arithmetic of src/client, follows the leader,
/// retries with the same request id, and records requests and outcomes in the history. Its tasks
/// are in client_task.cpp.
class Client final : public Requester {
 public:
  struct Context {
    World& world;
    Network& network;
    Checker& checker;
    Directory& directory;
    Storage& storage;
  };

  Client(const Context& context, Endpoint endpoint, HostClock clock);

  void begin();
  void handle_reply(const Reply& answer) override;
  void pause(VirtualTime length);
  /// Crashes the process; a new one takes its place.
  void die();
  /// Stops acquiring locks.
  void retire() { is_retired_ = true; }
  /// Lets the lease expire. REQUIRES: retired and idle.
  void end_lease();
  /// Whether it neither holds nor waits.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] std::string status() const;
  [[nodiscard]] std::size_t grants() const noexcept { return grants_; }

 private:
  using OnOutcome = std::function<void(const core::Outcome&)>;

  /// Lease; not valid before its grant.
  struct Session {
    core::LeaseId lease{};
    std::chrono::milliseconds ttl{};
    std::shared_ptr<detail::LeaseRecord> record{};
    core::RequestId last_request{};
  };

  /// Request without a final reply.
  struct PendingRequest {
    core::Command command;
    OnOutcome on_outcome;
    bool is_waiting = false;  ///< Whether the server has queued it.
  };

  /// One acquire and its hold.
  struct Held {
    std::string id;  ///< Id in the history.
    core::RequestId request{};
    std::vector<core::Item> items;
    core::FencingToken token{};
    history::WaitPolicy policy = history::WaitPolicy::wait;
    std::uint64_t question = 0;
  };

  /// State machine of the present task.
  struct Work {
    enum class Step : std::uint8_t { idle, asking, leaving, holding, releasing };
    Step step = Step::idle;
    std::uint64_t number = 0;  ///< Number of the task; callbacks of earlier ones are ignored.
    std::vector<Held> held;    ///< Nested holds; the last one is being acquired or released.
    std::size_t wanted = 1;    ///< Number of nested locks to acquire.
  };

  // Time.
  [[nodiscard]] sys::BootTime boot_time() const {
    return sys::BootTime(clock_.local(world_.now()));
  }
  [[nodiscard]] history::Time real(sys::BootTime local) const;
  void after(std::chrono::nanoseconds delay, std::function<void()> task);
  /// Calls `task` unless the client has crashed; after a pause, at its end.
  void awake(std::uint64_t life, std::function<void()> task);

  // Requests.
  std::uint64_t ask(core::Command command, OnOutcome on_outcome);
  void send(std::uint64_t number);
  void retry_later(std::uint64_t number, std::chrono::nanoseconds delay);
  void handle(const Reply& answer);
  void handle_outcome(std::uint64_t number, const core::Outcome& outcome);
  void follow(const Reply& answer);

  // The lease.
  void open_session();
  void session_opened(sys::BootTime sent);
  void check_lease();
  void renew();
  void lose_lease();
  [[nodiscard]] bool is_lease_valid() const;

  // Work: client_task.cpp
  void begin_work();
  void schedule_work();
  void acquire_next();
  void handle_request(const core::Outcome& outcome);
  void granted(const core::Granted& granted);
  void failed(const std::string& why);
  void time_out();
  void hold();
  void write_to_storage(const Held& held);
  void downgrade();
  void release();
  void released(const core::Outcome& outcome);
  void abandon_work(const std::string& why);
  [[nodiscard]] bool should_read();
  void read(const std::string& name);
  [[nodiscard]] std::vector<core::Item> choose_items();
  void record(history::Kind kind, const Held& held, history::Event event = {});

  World& world_;
  Network& network_;
  Checker& checker_;
  Directory& directory_;
  Storage& storage_;
  Endpoint endpoint_;
  HostClock clock_;
  std::uint64_t life_ = 0;
  VirtualTime paused_until_{};
  bool is_retired_ = false;
  std::size_t server_ = 0;  ///< Present server.
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, PendingRequest> pending_requests_;
  std::map<std::uint64_t, std::string>
      acquisitions_;  ///< Ids in the history, finished ones included.
  std::map<std::uint64_t, sys::BootTime> renewals_;  ///< Send times of renewals without a reply.
  struct Reading {
    std::string name;
    VirtualTime since{};
    core::Revision known{};  ///< Revision acknowledged to any client at the start.
  };
  std::map<std::uint64_t, Reading> reads_;
  std::optional<Session> session_;
  std::uint64_t sessions_ = 0;
  Work work_;
  std::size_t grants_ = 0;
};

/// Item in the format of the history.
[[nodiscard]] history::Item to_history(const core::Item& item);

}  // namespace tenure::simulation
