#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>

#include "backends/zookeeper/strand.hpp"
#include "backends/zookeeper/timer_thread.hpp"
#include "backends/zookeeper/url.hpp"

struct _zhandle;

namespace tenure::backends::zookeeper {

/// What a server answered. Valid for as long as the callback runs.
struct Reply {
  int code = 0;             ///< One of the C client's: ZOK, ZNONODE, …
  std::string_view path{};  ///< Of what was created.
  std::string_view value{};
  std::int64_t czxid = 0;            ///< Which transaction created it.
  std::int64_t ephemeral_owner = 0;  ///< The session that it ends with.
  std::vector<std::string_view> names{};
};
using ReplyCallback = std::move_only_function<void(const Reply&)>;

/// A session at ZooKeeper by its C client, and what can be asked on it. Knows nothing of locks.
///
/// The C client has two threads of its own; what they bring is dealt with at the desk, at once: no
/// call made there may wait or run a user's code. Everything below is called at the desk, unless it
/// says otherwise. Every answer comes once, never before the question has returned; or not at
/// all, if the link ends before.
class Connection {
 public:
  enum class State : std::uint8_t {
    connecting,  ///< Not yet, or not any more: the session may live on.
    connected,
    expired,      ///< The session has ended. There is no way back.
    auth_failed,  ///< They do not take who we say we are. Likewise.
  };
  enum class Event : std::uint8_t {
    deleted,   ///< The node is not there any more.
    changed,   ///< Or was made: in any case the watch is used up.
    children,  ///< Of a list().
  };
  struct Callbacks {
    std::function<void(State)> changed{};
    std::function<void(Event, std::string_view path)> node_event{};
  };
  enum class Watch : std::uint8_t { no, yes };
  /// How a folder is made.
  enum class FolderKind : std::uint8_t {
    container,   ///< Goes by itself when it has been empty for a while.
    persistent,  ///< For servers that do not know those.
  };

  Connection(Strand& strand, TimerThread& timers, Callbacks calls);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Ends the session, so that its nodes go at once, if a server can be told. Waits for the threads
  /// of the C client, and for a moment for what is under way. Not at the desk.
  ~Connection();

  /// Begins to connect, and never gives up. May ask for addresses: not at the desk.
  [[nodiscard]] Result<void> open(const Address& address, std::chrono::milliseconds timeout);

  [[nodiscard]] State state() const noexcept { return state_; }
  /// What the servers made of the timeout. REQUIRES: connected.
  [[nodiscard]] std::chrono::milliseconds timeout() const;
  /// The session, which nodes name as their owner. REQUIRES: connected once.
  [[nodiscard]] std::int64_t session() const;
  /// What it takes to take the session over: 16 bytes.
  [[nodiscard]] std::string password() const;
  /// How many questions were asked, and events told, so far.
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

  /// An ephemeral node whose name ends with the next number of its folder.
  void create_ticket(const std::string& path, std::string_view value, ReplyCallback on_reply);
  void create_folder(const std::string& path, FolderKind kind, ReplyCallback on_reply);
  void remove(const std::string& path, ReplyCallback on_reply);
  /// All of them or none; refused with the code of the first that was not deleted.
  void remove_all(const std::vector<std::string>& paths, ReplyCallback on_reply);
  void list(const std::string& path, Watch watch, ReplyCallback on_reply);
  /// What it says and who made it. A watch is only left behind if it is there.
  void get(const std::string& path, Watch watch, ReplyCallback on_reply);
  /// To the leader and back; what it knew then, our server knows at the answer.
  void sync(ReplyCallback on_reply);

 private:
  struct PendingCall;
  struct CallbackAdapter;
  /// An errand that nobody has taken yet.
  class OutgoingCall {
   public:
    OutgoingCall(Strand& strand, ReplyCallback on_reply);
    [[nodiscard]] const void* context() const noexcept;

   private:
    friend class Connection;
    std::list<PendingCall> call_;
  };

  void submitted(int code, OutgoingCall outgoing);
  void complete(PendingCall& call, std::list<PendingCall>& to);
  void set_state(State state);

  Strand& strand_;
  TimerThread& timers_;
  const Callbacks callbacks_;
  Access access_ = Access::world;
  std::atomic<_zhandle*> handle_ = nullptr;
  std::atomic<State> state_ = State::connecting;
  std::list<PendingCall> pending_;                ///< What the C client has.
  std::atomic<std::uint32_t> pending_count_ = 0;  ///< How many that are, for whoever waits.
  std::uint64_t requests_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace tenure::backends::zookeeper
