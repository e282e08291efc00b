#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <tenure/error.hpp>
#include <tenure/ids.hpp>

#include "backends/backend.hpp"
#include "backends/zookeeper/connection.hpp"
#include "backends/zookeeper/delete_batcher.hpp"
#include "backends/zookeeper/queue_view.hpp"

namespace tenure::backends::zookeeper {

/// Specification of a queue node to create.
struct NodeSpec {
  std::string folder{};
  Kind kind = Kind::lock;
  Queue queue = Queue::wait;
  /// Value of the node, see node_value.hpp.
  std::string value{};
};

/// Grant of a claim.
struct Grant {
  FencingToken token{};
  /// Position on entry to the queue; 0: granted at once.
  std::size_t position = 0;
};

/// One ZooKeeper session and the nodes claimed on it. Nodes are created, found again after a lost
/// reply, watched, granted and deleted across reconnects. It knows nothing about requests and
/// leases.
///
///   unsent → creating → exists (waiting or granted) → deleted
///               ↓ ↑        ↑
///           unconfirmed ───┘      resolved after the reconnect by the unique name
///
/// Not thread safe: all calls run on the strand.
class Session {
 public:
  using OnDecision = std::move_only_function<void(Result<Grant>)>;
  using OnRemoved = std::move_only_function<void(Result<void>)>;
  /// Events for the owner; they run on the strand.
  struct Callbacks {
    std::function<void(Connection::State)> changed{};
    /// Another client deleted a granted or waiting node. The claim is forgotten.
    std::function<void(ClaimId)> deleted_externally{};
    /// The children of a folder that list() watches changed.
    std::function<void(const std::string& folder)> children{};
  };
  /// Parts of the backend that the session uses.
  struct Environment {
    Strand& strand;
    TimerThread& timers;
    /// Runs a job on the strand at that time, unless the session has ended.
    std::function<void(TimerThread::Clock::time_point, Strand::Job)> later{};
  };

  Session(Environment environment, std::chrono::milliseconds requested_timeout, Callbacks calls);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// REQUIRES: not on the strand, see Connection.
  ~Session() = default;

  /// Requested session timeout.
  [[nodiscard]] std::chrono::milliseconds requested_timeout() const noexcept {
    return requested_timeout_;
  }
  [[nodiscard]] Connection& connection() noexcept { return connection_; }
  [[nodiscard]] bool is_connected() const noexcept {
    return !is_ended_ && connection_.state() == Connection::State::connected;
  }
  /// Ends the session: no callback runs any more.
  void end() noexcept { is_ended_ = true; }

  /// Creates a node and reports the grant or the error; `would_block` only after the node is
  /// deleted again. `on_decision` is called once, or never if the claim is withdrawn first.
  ClaimId claim(NodeSpec spec, OnDecision on_decision);
  /// Withdraws a claim: deletes its node, with retries. `on_removed` is called after the deletion;
  /// `not_held`: the node was gone before. REQUIRES: the claim was neither refused, withdrawn nor
  /// deleted externally.
  void withdraw(ClaimId id, OnRemoved on_removed);
  /// Whether the node of the claim is known to exist.
  [[nodiscard]] bool exists(ClaimId id) const;
  /// Whether a node of this session in the folder conflicts with the kind.
  [[nodiscard]] bool has_own_conflict(const std::string& folder, Kind kind) const;

  /// Lists a folder, with retries after reconnects.
  void list(std::string folder, Connection::Watch watch, ReplyCallback on_reply);
  void get(std::string path, ReplyCallback on_reply);

 private:
  /// Life cycle of a claim, see the class comment.
  enum class Stage : std::uint8_t { unsent, creating, unconfirmed, exists };
  /// Age of the knowledge about other clients' nodes.
  enum class Knowledge : std::uint8_t { fresh, stale };
  /// One node that is wanted or exists.
  struct Claim {
    NodeSpec spec{};
    OnDecision on_decision{};
    /// Unique name without the sequence number.
    std::string prefix{};
    Stage stage = Stage::unsent;
    /// Node name. This field and the following ones are valid only in stage `exists`.
    std::string node{};
    Ticket ticket{};
    FencingToken token{};
    std::size_t position = 0;
    /// Logical time of the creation request.
    std::uint64_t sent_at = 0;
    bool is_granted = false;
    bool is_withdrawn = false;
    /// Error to report after the node is deleted.
    std::optional<Error> rejection{};
    bool is_delete_sent = false;
    /// The reply to a deletion was lost.
    bool is_delete_unconfirmed = false;
    int attempts = 0;
    OnRemoved on_removed{};
  };
  /// State of one queue folder.
  struct Folder {
    QueueView view{};
    /// Watched nodes of other clients; true: the watch is confirmed.
    std::map<std::string, bool, std::less<>> watched{};
    std::size_t claims = 0;
    /// Nodes of this session that keep the folder from being deleted.
    std::size_t anchors = 0;
    /// Logical time of the list in flight; 0: none.
    std::uint64_t list_requested_at = 0;
    bool needs_relist = false;
    /// A watch reports the deletion of the folder itself.
    bool is_watched = false;
    bool is_watch_pending = false;
  };

  // session.cpp: life cycle of a node.
  /// Sends the creation of the node.
  void send(ClaimId id);
  /// Lists the queue first; creates the node only without a conflict.
  void send_if_free(ClaimId id);
  /// Evaluates the reply to a creation; creates missing folders.
  void created(ClaimId id, const Reply& reply);
  /// Records an existing node and evaluates its admission.
  void confirm_created(ClaimId id, Claim& claim, const Reply& reply);
  /// Ends a claim without a node.
  void reject(ClaimId id, Error why);
  /// Sends the deletion of the node, unless that is in flight.
  void send_delete(ClaimId id, Claim& claim);
  /// Evaluates the reply to a deletion.
  void delete_done(ClaimId id, const Reply& reply);
  /// Removes a claim from all tables except the view, and returns it.
  std::unique_ptr<Claim> erase(ClaimId id);
  /// Creates a folder and its missing parents.
  void create_folder(const std::string& path, std::move_only_function<void(int)> made,
                     int attempts);

  // session_queue.cpp: admission.
  /// Lists the folder to update its view; one list is in flight at a time.
  void refresh(const std::string& name, Folder& folder);
  /// Applies a list to the view and evaluates all claims of the folder.
  void refreshed(const std::string& name, std::uint64_t requested_at, const Reply& reply);
  /// Resolves claims whose creation reply was lost, from a list.
  void recover_unconfirmed(const std::string& name, const Reply& reply);
  /// Grants a claim, or finds and watches its blocker.
  void evaluate(ClaimId id, Knowledge knowledge);
  /// Reports the grant of a claim.
  void grant(ClaimId id, Claim& claim);
  /// Deletes the node and then reports the error.
  void refuse(ClaimId id, Claim& claim, Error why);
  /// Watches a blocker of another client.
  void watch(const std::string& name, Folder& folder, const std::string& node);
  /// Removes a node from the view and evaluates the claims it blocked.
  void node_deleted(const std::string& name, const std::string& node);
  /// Watches the folder itself, so that its view stays valid without own nodes.
  void watch_folder(const std::string& name, Folder& folder);
  /// Counts an own node out; without any the view may become invalid.
  void remove_anchor(Folder& folder);

  // session_events.cpp: connection and watch events.
  void state_changed(Connection::State state);
  /// Invalidates all views and watches.
  void disconnected();
  /// Resends and resolves everything after a reconnect.
  void connected();
  void node_event(Connection::Event event, std::string_view path);
  /// Ends a claim whose node another client deleted.
  void deleted_externally(ClaimId id);
  /// Schedules watch_own() for nodes that live longer than most.
  void watch_own_later(ClaimId id);
  /// Watches the own nodes whose delay has passed.
  void watch_own_due();
  /// Watches an own node, to detect its deletion by another client.
  void watch_own(ClaimId id);
  using Request = std::function<void(ReplyCallback)>;
  /// Sends a read, again after each reconnect until a reply arrives.
  void call_with_retry(Request request, ReplyCallback on_reply);

  /// Null if the claim or the session has ended.
  [[nodiscard]] Claim* find(ClaimId id);
  /// Null also if the node is deleted or is being deleted by this client.
  [[nodiscard]] Claim* find_wanted(ClaimId id);
  [[nodiscard]] Folder& folder_of(const Claim& claim) { return folders_[claim.spec.folder]; }
  [[nodiscard]] std::uint64_t next_sequence() noexcept { return ++sequence_; }

  const Environment environment_;
  const std::chrono::milliseconds requested_timeout_;
  const Callbacks callbacks_;
  bool is_ended_ = false;
  bool was_connected_ = false;
  std::uint64_t last_claim_ = 0;
  std::uint64_t sequence_ = 0;
  std::size_t folder_watches_ = 0;
  Connection::FolderKind folder_kind_ = Connection::FolderKind::container;
  /// Claims in creation order, which is also the order of retries.
  absl::btree_map<ClaimId, std::unique_ptr<Claim>> claims_;
  /// Number of claims in stage `unconfirmed`.
  std::size_t unconfirmed_ = 0;
  absl::flat_hash_map<std::string, ClaimId> by_path_;
  absl::flat_hash_set<std::string>
      /// Recently used folders: a second use makes further uses likely, which pays for a watch.
      recent_folders_;
  std::map<std::string, Folder, std::less<>> folders_;
  std::vector<Strand::Job> when_connected_;
  std::deque<std::pair<TimerThread::Clock::time_point, ClaimId>> own_watches_due_;
  bool is_watch_timer_set_ = false;
  DeleteBatcher deletes_;
  /// Declared last: its threads use every other member.
  Connection connection_;
};

}  // namespace tenure::backends::zookeeper
