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
#include "backends/zookeeper/link.hpp"
#include "backends/zookeeper/queue_view.hpp"
#include "backends/zookeeper/removals.hpp"

namespace tenure::backends::zookeeper {

/// A node to be made in a folder.
struct Wish {
  std::string folder{};
  Kind kind = Kind::lock;
  Queue queue = Queue::wait;
  std::string value{};  ///< What the node has to say.
};

/// It may go.
struct Place {
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
  using Verdict = std::move_only_function<void(Result<Place>)>;
  using Left = std::move_only_function<void(Result<void>)>;
  struct Calls {
    std::function<void(Link::State)> changed{};
    /// A node of ours that may go, or waits, was deleted by somebody else. It is forgotten.
    std::function<void(ClaimId)> taken{};
    /// The children of a folder changed that list() was asked to watch.
    std::function<void(const std::string& folder)> children{};
  };
  struct Surroundings {
    Desk& desk;
    Chores& chores;
    /// Does it at that time, at the desk, if the session is not over by then.
    std::function<void(Chores::Clock::time_point, Desk::Job)> later{};
  };

  Session(Surroundings around, std::chrono::milliseconds asked, Calls calls);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Not at the desk: see Link.
  ~Session() = default;

  /// The timeout that was asked for.
  [[nodiscard]] std::chrono::milliseconds asked() const noexcept { return asked_; }
  [[nodiscard]] Link& link() noexcept { return link_; }
  [[nodiscard]] bool is_connected() const noexcept {
    return !is_over_ && link_.state() == Link::State::connected;
  }
  /// It is over: nothing is answered any more, and nothing done.
  void end() noexcept { is_over_ = true; }

  /// Makes a node and says when it may go, or why not; `would_block` only after it is gone again.
  /// The verdict comes once, or never if the claim leaves before.
  ClaimId claim(Wish wish, Verdict verdict);
  /// Deletes it, whatever it takes; `left` is told when it is gone: `not_held` if it was gone
  /// before. REQUIRES: it was claimed, and neither refused nor left nor taken.
  void leave(ClaimId id, Left left);
  /// Has it been seen in its queue?
  [[nodiscard]] bool is_there(ClaimId id) const;
  /// Is a node of ours in this folder that would be in the way?
  [[nodiscard]] bool is_ours_in_the_way(const std::string& folder, Kind kind) const;

  /// Asked again if the connection breaks.
  void list(std::string folder, Link::Watch watch, Answer answer);
  void get(std::string path, Answer answer);

 private:
  enum class Stage : std::uint8_t { unsent, creating, lost, there };
  enum class Knowledge : std::uint8_t { fresh, old };  ///< Of others' nodes.
  struct Claim {
    Wish wish{};
    Verdict verdict{};
    std::string prefix{};  ///< Up to the number.
    Stage stage = Stage::unsent;
    std::string node{};  ///< From here on: only if it is there.
    Ticket ticket{};
    FencingToken token{};
    std::size_t position = 0;
    std::uint64_t since = 0;  ///< In the order of all that is asked.
    bool may_go = false;
    bool is_leaving = false;
    std::optional<Error> refusal{};  ///< To be told when it is gone.
    bool is_delete_sent = false;
    bool was_lost = false;  ///< The answer to a deletion.
    int attempts = 0;
    Left left{};
  };
  struct Folder {
    QueueView view{};
    std::map<std::string, bool, std::less<>> watched{};  ///< Others' nodes; true: for sure.
    std::size_t claims = 0;
    std::size_t anchors = 0;  ///< Nodes of ours that keep the folder from being deleted.
    std::uint64_t asked = 0;  ///< When the list under way was asked for; 0: none is.
    bool is_list_wanted = false;
    bool is_guarded = false;  ///< We would hear if the folder itself were deleted.
    bool is_guard_asked = false;
  };

  // session.cpp: the life of a node.
  void send(ClaimId id);
  void send_if_free(ClaimId id);
  void created(ClaimId id, const Reply& reply);
  void stands(ClaimId id, Claim& claim, const Reply& reply);
  void give_up(ClaimId id, Error why);
  void remove(ClaimId id, Claim& claim);
  void removed(ClaimId id, const Reply& reply);
  std::unique_ptr<Claim> forget(ClaimId id);
  void make_folder(const std::string& path, std::move_only_function<void(int)> made, int attempts);

  // session_queue.cpp: who may go.
  void look(const std::string& name, Folder& folder);
  void looked(const std::string& name, std::uint64_t asked, const Reply& reply);
  void find_again(const std::string& name, const Reply& reply);
  void judge(ClaimId id, Knowledge knowledge);
  void grant(ClaimId id, Claim& claim);
  void turn_away(ClaimId id, Claim& claim, Error why);
  void watch(const std::string& name, Folder& folder, const std::string& node);
  void gone(const std::string& name, const std::string& node);
  void guard(const std::string& name, Folder& folder);
  void lift_anchor(Folder& folder);

  // session_events.cpp: what happens to us.
  void link_changed(Link::State state);
  void disconnected();
  void connected();
  void happened(Link::Event event, std::string_view path);
  void taken(ClaimId id);
  void mind_later(ClaimId id);
  void mind_now();
  void mind(ClaimId id);
  using Question = std::function<void(Answer)>;
  void ask(Question question, Answer answer);

  /// Null: it is gone, or the session is.
  [[nodiscard]] Claim* find(ClaimId id);
  [[nodiscard]] Folder& folder_of(const Claim& claim) { return folders_[claim.wish.folder]; }
  [[nodiscard]] std::uint64_t tick() noexcept { return ++clock_; }

  const Surroundings around_;
  const std::chrono::milliseconds asked_;
  const Calls calls_;
  bool is_over_ = false;
  bool was_connected_ = false;
  std::uint64_t last_claim_ = 0;
  std::uint64_t clock_ = 0;
  std::size_t guarded_ = 0;
  Link::Folder folder_kind_ = Link::Folder::container;
  /// In the order they came, so that they are sent again in that order.
  absl::btree_map<ClaimId, std::unique_ptr<Claim>> claims_;
  std::size_t lost_ = 0;  ///< Claims in that stage.
  absl::flat_hash_map<std::string, ClaimId> by_path_;
  absl::flat_hash_set<std::string> used_;  ///< Folders, lately; who comes again may come often.
  std::map<std::string, Folder, std::less<>> folders_;
  std::vector<Desk::Job> when_connected_;
  std::deque<std::pair<Chores::Clock::time_point, ClaimId>> to_mind_;
  bool is_minding_ = false;
  Removals removals_;
  Link link_;  ///< Last: its threads use all the rest.
};

}  // namespace tenure::backends::zookeeper
