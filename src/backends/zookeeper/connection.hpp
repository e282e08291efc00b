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

/// Reply of a server. Valid during the callback only.
struct Reply {
  /// Result code of the C client: ZOK, ZNONODE, …
  int code = 0;
  /// Path of the created node.
  std::string_view path{};
  std::string_view value{};
  /// Id of the transaction that created the node.
  std::int64_t czxid = 0;
  /// Session that owns the ephemeral node.
  std::int64_t ephemeral_owner = 0;
  std::vector<std::string_view> names{};
};
using ReplyCallback = std::move_only_function<void(const Reply&)>;

/// One ZooKeeper session: wrapper around the C client with asynchronous requests. It knows nothing
/// about locks.
///
/// The C client delivers replies and events on its own two threads; the wrapper dispatches them on
/// the strand, so no call made there may block or run user code. Every reply arrives once and never
/// before the request has returned, or not at all if the connection is destroyed first.
///
/// Not thread safe: all calls run on the strand unless stated otherwise.
class Connection {
 public:
  enum class State : std::uint8_t {
    /// Not connected; the session may still be alive.
    connecting,
    connected,
    /// The session has expired; final.
    expired,
    /// The servers rejected the credentials; final.
    auth_failed,
  };
  enum class Event : std::uint8_t {
    /// The node was deleted.
    deleted,
    /// The node was changed or created; the watch is used up.
    changed,
    /// The children of a listed node changed.
    children,
  };
  struct Callbacks {
    std::function<void(State)> changed{};
    std::function<void(Event, std::string_view path)> node_event{};
  };
  enum class Watch : std::uint8_t { no, yes };
  /// Node type of folders.
  enum class FolderKind : std::uint8_t {
    /// Container node: the servers delete it after it has been empty for a while.
    container,
    /// Persistent node, for servers without container nodes.
    persistent,
  };

  Connection(Strand& strand, TimerThread& timers, Callbacks calls);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  /// Closes the session, so that its nodes are deleted at once if a server is reachable. Blocks on
  /// the threads of the C client, and briefly on requests in flight. REQUIRES: not on the strand.
  ~Connection();

  /// Starts to connect and retries for ever. May resolve host names. REQUIRES: not on the strand.
  [[nodiscard]] Result<void> open(const Address& address, std::chrono::milliseconds timeout);

  [[nodiscard]] State state() const noexcept { return state_; }
  /// Session timeout negotiated with the servers. REQUIRES: connected.
  [[nodiscard]] std::chrono::milliseconds timeout() const;
  /// Session id, the owner of its ephemeral nodes. REQUIRES: connected once.
  [[nodiscard]] std::int64_t session() const;
  /// Password of the session (16 bytes), which allows a client to take it over.
  [[nodiscard]] std::string password() const;
  /// Numbers of requests sent and events received.
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

  /// Creates an ephemeral sequential node.
  void create_ticket(const std::string& path, std::string_view value, ReplyCallback on_reply);
  /// Creates an empty node that can have children. Fails with ZNODEEXISTS if it exists.
  void create_folder(const std::string& path, FolderKind kind, ReplyCallback on_reply);
  /// Deletes a node, whatever its version.
  void remove(const std::string& path, ReplyCallback on_reply);
  /// Deletes all nodes or none; fails with the code of the first one that could not be deleted.
  void remove_all(const std::vector<std::string>& paths, ReplyCallback on_reply);
  /// Lists the children of a node.
  void list(const std::string& path, Watch watch, ReplyCallback on_reply);
  /// Reads the value and owner of a node. The watch is set only if the node exists.
  void get(const std::string& path, Watch watch, ReplyCallback on_reply);
  /// Round trip to the leader: afterwards the server has applied everything the leader had
  /// committed.
  void sync(ReplyCallback on_reply);

 private:
  /// Request in flight.
  struct PendingCall;
  /// Static functions that the C client calls.
  struct CallbackAdapter;
  /// Request that the C client has not accepted yet.
  class OutgoingCall {
   public:
    OutgoingCall(Strand& strand, ReplyCallback on_reply);
    [[nodiscard]] const void* context() const noexcept;

   private:
    friend class Connection;
    std::list<PendingCall> call_;
  };

  /// Registers an accepted request, or fails a rejected one asynchronously.
  void submitted(int code, OutgoingCall outgoing);
  /// Removes a completed request; wakes the destructor at zero.
  void complete(PendingCall& call, std::list<PendingCall>& to);
  /// Changes the state and reports it; final states do not change.
  void set_state(State state);

  /// Strand on which replies and events are delivered.
  Strand& strand_;
  /// Thread on which rejected requests fail.
  TimerThread& timers_;
  /// Events for the owner.
  const Callbacks callbacks_;
  /// Access control of created nodes.
  Access access_ = Access::world;
  /// Handle of the C client. Atomic: its threads may set it before open() returns.
  std::atomic<_zhandle*> handle_ = nullptr;
  /// Connection state. Atomic for the destructor, which reads it off the strand.
  std::atomic<State> state_ = State::connecting;
  /// Requests accepted by the C client.
  std::list<PendingCall> pending_;
  /// Size of pending_, for the destructor, which waits for zero.
  std::atomic<std::uint32_t> pending_count_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace tenure::backends::zookeeper
