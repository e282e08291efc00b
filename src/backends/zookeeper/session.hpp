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

/// A node to be made in a folder.
struct NodeSpec {
  std::string folder{};
  Kind kind = Kind::lock;
  Queue queue = Queue::wait;
  std::string value{};  ///< What the node has to say.
};

/// It may go.
struct Grant {
  FencingToken token{};
  std::size_t position = 0;  ///< Where it began to wait; 0: it did not.
};

/// One session and the nodes we have or want on it: they are made, found again when an answer was
/// lost, watched, told when they may go, and deleted, whatever happens to the connection in
/// between. Knows nothing of requests and leases.
///
///   unsent → creating → there (waits, or may go) → deleted
///               ↓ ↑        ↑
///              lost ───────┘      asked for after the next connection, by its unique name
///
/// All at the desk.
class Session {
 public:
  using OnDecision = std::move_only_function<void(Result<Grant>)>;
  using OnRemoved = std::move_only_function<void(Result<void>)>;
  struct Callbacks {
    std::function<void(Connection::State)> changed{};
    /// A node of ours that may go, or waits, was deleted by somebody else. It is forgotten.
    std::function<void(ClaimId)> deleted_externally{};
    /// The children of a folder changed that list() was asked to watch.
    std::function<void(const std::string& folder)> children{};
  };
  struct Environment {
    Strand& strand;
    TimerThread& timers;
    /// Does it at that time, at the desk, if the session is not over by then.
    std::function<void(TimerThread::Clock::time_point, Strand::Job)> later{};
  };

  Session(Environment environment, std::chrono::milliseconds requested_timeout, Callbacks calls);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Not at the desk: see Link.
  ~Session() = default;

  /// The timeout that was asked for.
  [[nodiscard]] std::chrono::milliseconds requested_timeout() const noexcept {
    return requested_timeout_;
  }
  [[nodiscard]] Connection& connection() noexcept { return connection_; }
  [[nodiscard]] bool is_connected() const noexcept {
    return !is_ended_ && connection_.state() == Connection::State::connected;
  }
  /// It is over: nothing is answered any more, and nothing done.
  void end() noexcept { is_ended_ = true; }

  /// Makes a node and says when it may go, or why not; `would_block` only after it is gone again.
  /// The verdict comes once, or never if the claim leaves before.
  ClaimId claim(NodeSpec spec, OnDecision on_decision);
  /// Deletes it, whatever it takes; `left` is told when it is gone: `not_held` if it was gone
  /// before. REQUIRES: it was claimed, and neither refused nor left nor taken.
  void withdraw(ClaimId id, OnRemoved on_removed);
  /// Has it been seen in its queue?
  [[nodiscard]] bool exists(ClaimId id) const;
  /// Is a node of ours in this folder that would be in the way?
  [[nodiscard]] bool has_own_conflict(const std::string& folder, Kind kind) const;

  /// Asked again if the connection breaks.
  void list(std::string folder, Connection::Watch watch, ReplyCallback on_reply);
  void get(std::string path, ReplyCallback on_reply);

 private:
  enum class Stage : std::uint8_t { unsent, creating, unconfirmed, exists };
  enum class Knowledge : std::uint8_t { fresh, stale };  ///< Of others' nodes.
  struct Claim {
    NodeSpec spec{};
    OnDecision on_decision{};
    std::string prefix{};  ///< Up to the number.
    Stage stage = Stage::unsent;
    std::string node{};  ///< From here on: only if it is there.
    Ticket ticket{};
    FencingToken token{};
    std::size_t position = 0;
    std::uint64_t sent_at = 0;  ///< In the order of all that is asked.
    bool is_granted = false;
    bool is_withdrawn = false;
    std::optional<Error> rejection{};  ///< To be told when it is gone.
    bool is_delete_sent = false;
    bool is_delete_unconfirmed = false;  ///< The answer to a deletion.
    int attempts = 0;
    OnRemoved on_removed{};
  };
  struct Folder {
    QueueView view{};
    std::map<std::string, bool, std::less<>> watched{};  ///< Others' nodes; true: for sure.
    std::size_t claims = 0;
    std::size_t anchors = 0;  ///< Nodes of ours that keep the folder from being deleted.
    std::uint64_t list_requested_at = 0;  ///< When the list under way was asked for; 0: none is.
    bool needs_relist = false;
    bool is_watched = false;  ///< We would hear if the folder itself were deleted.
    bool is_watch_pending = false;
  };

  // session.cpp: the life of a node.
  void send(ClaimId id);
  void send_if_free(ClaimId id);
  void created(ClaimId id, const Reply& reply);
  void confirm_created(ClaimId id, Claim& claim, const Reply& reply);
  void reject(ClaimId id, Error why);
  void send_delete(ClaimId id, Claim& claim);
  void delete_done(ClaimId id, const Reply& reply);
  std::unique_ptr<Claim> erase(ClaimId id);
  void create_folder(const std::string& path, std::move_only_function<void(int)> made,
                     int attempts);

  // session_queue.cpp: who may go.
  void refresh(const std::string& name, Folder& folder);
  void refreshed(const std::string& name, std::uint64_t asked, const Reply& reply);
  void recover_unconfirmed(const std::string& name, const Reply& reply);
  void evaluate(ClaimId id, Knowledge knowledge);
  void grant(ClaimId id, Claim& claim);
  void refuse(ClaimId id, Claim& claim, Error why);
  void watch(const std::string& name, Folder& folder, const std::string& node);
  void node_deleted(const std::string& name, const std::string& node);
  void watch_folder(const std::string& name, Folder& folder);
  void remove_anchor(Folder& folder);

  // session_events.cpp: what happens to us.
  void state_changed(Connection::State state);
  void disconnected();
  void connected();
  void node_event(Connection::Event event, std::string_view path);
  void deleted_externally(ClaimId id);
  void watch_own_later(ClaimId id);
  void watch_own_due();
  void watch_own(ClaimId id);
  using Request = std::function<void(ReplyCallback)>;
  void call_with_retry(Request request, ReplyCallback on_reply);

  /// Null: it is gone, or the session is.
  [[nodiscard]] Claim* find(ClaimId id);
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
  /// In the order they came, so that they are sent again in that order.
  absl::btree_map<ClaimId, std::unique_ptr<Claim>> claims_;
  std::size_t unconfirmed_ = 0;  ///< Claims in that stage.
  absl::flat_hash_map<std::string, ClaimId> by_path_;
  absl::flat_hash_set<std::string>
      recent_folders_;  ///< Folders, lately; who comes again may come often.
  std::map<std::string, Folder, std::less<>> folders_;
  std::vector<Strand::Job> when_connected_;
  std::deque<std::pair<TimerThread::Clock::time_point, ClaimId>> own_watches_due_;
  bool is_watch_timer_set_ = false;
  DeleteBatcher deletes_;
  Connection connection_;  ///< Last: its threads use all the rest.
};

}  // namespace tenure::backends::zookeeper
