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
#include "simulation/host_clock.hpp"
#include "simulation/judge.hpp"
#include "simulation/network.hpp"
#include "simulation/protocol.hpp"

namespace tenure::simulation {

/// Storage behind a fence: the real one, at the other end of the network.
struct Storage {
  Fence fence{};
};

/// One process that uses locks: keeps a lease by the arithmetic of src/client, follows the leader,
/// asks again with the same id until it is answered, and tells the history what it was told. Its
/// tasks are in client_task.cpp.
class Client final : public Requester {
 public:
  struct Context {
    World& world;
    Network& network;
    Judge& judge;
    Directory& directory;
    Storage& storage;
  };

  Client(const Context& context, Endpoint endpoint, HostClock clock);

  void begin();
  void handle_reply(const Reply& answer) override;
  void pause(VirtualTime length);
  /// Gone without a word; another process comes in its place.
  void die();
  /// Takes no new locks.
  void retire() { is_retired_ = true; }
  /// Lets its lease end. REQUIRES: it is retired and idle.
  void end_lease();
  /// Nothing is held and nothing waits.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] std::string status() const;
  [[nodiscard]] std::size_t grants() const noexcept { return grants_; }

 private:
  using OnOutcome = std::function<void(const core::Outcome&)>;

  /// A lease, as far as it is one: nothing is believed before it is granted.
  struct Session {
    core::LeaseId lease{};
    std::chrono::milliseconds ttl{};
    std::shared_ptr<detail::LeaseRecord> record{};
    core::RequestId last_request{};
  };

  /// What was asked and not answered for good.
  struct PendingRequest {
    core::Command command;
    OnOutcome on_outcome;
    bool is_waiting = false;  ///< It was told that it waits.
  };

  /// One acquisition.
  struct Held {
    std::string id;  ///< In the history.
    core::RequestId request{};
    std::vector<core::Item> items;
    core::FencingToken token{};
    history::WaitPolicy policy = history::WaitPolicy::wait;
    std::uint64_t question = 0;
  };

  /// What is done with locks, one step after the other.
  struct Work {
    enum class Step : std::uint8_t { idle, asking, leaving, holding, releasing };
    Step step = Step::idle;
    std::uint64_t number = 0;  ///< Of the work; what was begun for an earlier one is void.
    std::vector<Held> held;    ///< The last one is asked for or released.
    std::size_t wanted = 1;    ///< How many to take, one inside the other.
  };

  // Time.
  [[nodiscard]] sys::BootTime boot_time() const {
    return sys::BootTime(clock_.local(world_.now()));
  }
  [[nodiscard]] history::Time real(sys::BootTime local) const;
  void after(std::chrono::nanoseconds delay, std::function<void()> task);
  /// Calls it if the client lives on and does not pause, else then.
  void awake(std::uint64_t life, std::function<void()> task);

  // Questions.
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
  Judge& judge_;
  Directory& directory_;
  Storage& storage_;
  Endpoint endpoint_;
  HostClock clock_;
  std::uint64_t life_ = 0;
  VirtualTime paused_until_{};
  bool is_retired_ = false;
  std::size_t server_ = 0;  ///< Whom it asks at present.
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, PendingRequest> pending_requests_;
  std::map<std::uint64_t, std::string> acquisitions_;  ///< Ids in the history, also of those over.
  std::map<std::uint64_t, sys::BootTime>
      renewals_;  ///< When those were sent that are not answered.
  struct Reading {
    std::string name;
    VirtualTime since{};
    core::Revision known{};  ///< Acknowledged to anybody by then.
  };
  std::map<std::uint64_t, Reading> reads_;
  std::optional<Session> session_;
  std::uint64_t sessions_ = 0;
  Work work_;
  std::size_t grants_ = 0;
};

/// As the history writes it.
[[nodiscard]] history::Item to_history(const core::Item& item);

}  // namespace tenure::simulation
