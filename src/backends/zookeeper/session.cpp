#include "backends/zookeeper/session.hpp"

#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/errors.hpp"
#include "backends/zookeeper/paths.hpp"

// Life cycle of a node: creation, recovery after a lost reply, deletion.

namespace tenure::backends::zookeeper {
namespace {

/// Attempts to create a node whose folder the servers delete concurrently because it is empty.
constexpr int create_attempts_max = 8;
/// Maximum depth of missing parent folders; names and chroots have fewer components.
constexpr int depth_max = 1100;

/// Maximum number of recently used folders to remember.
constexpr std::size_t recent_folders_max = 4096;

bool needs_order(Kind kind) {
  return kind != Kind::lease;
}

}  // namespace

Session::Session(Environment environment, std::chrono::milliseconds requested_timeout,
                 Callbacks calls)
    : environment_(std::move(environment)),
      requested_timeout_(requested_timeout),
      callbacks_(std::move(calls)),
      deletes_(connection_),
      connection_(environment_.strand, environment_.timers,
                  {.changed = [this](Connection::State state) { state_changed(state); },
                   .node_event = [this](Connection::Event event,
                                        std::string_view path) { node_event(event, path); }}) {}

ClaimId Session::claim(NodeSpec spec, OnDecision on_decision) {
  const ClaimId id{++last_claim_};
  auto claim = std::make_unique<Claim>();
  claim->prefix = fresh_prefix(spec.kind);
  claim->spec = std::move(spec);
  claim->on_decision = std::move(on_decision);
  ++folder_of(*claim).claims;
  claims_.emplace(id, std::move(claim));
  if (is_connected()) {
    send(id);
  }
  return id;
}

bool Session::exists(ClaimId id) const {
  const auto it = claims_.find(id);
  return it != claims_.end() && it->second->stage == Stage::exists;
}

bool Session::has_own_conflict(const std::string& folder, Kind kind) const {
  const auto it = folders_.find(folder);
  if (it == folders_.end()) {
    return false;
  }
  const auto* const other = it->second.view.conflicting_with(kind);
  if (other == nullptr || other->ours == ClaimId{}) {
    return false;
  }
  const auto& claim = *claims_.at(other->ours);
  return !claim.is_withdrawn && !claim.rejection;
}

void Session::withdraw(ClaimId id, OnRemoved on_removed) {
  auto* const claim = find(id);
  if (claim == nullptr) {
    on_removed(fail(Errc::not_held));
    return;
  }
  claim->is_withdrawn = true;
  claim->on_decision = nullptr;
  claim->on_removed = std::move(on_removed);
  if (claim->stage == Stage::exists) {
    send_delete(id, *claim);
  } else if (claim->stage == Stage::unsent) {
    erase(id)->on_removed({});
  } else {
    // Otherwise the node is deleted once its creation is confirmed.
  }
}

// A request that does not wait creates its node at once if the view proves that the queue is empty.
void Session::send(ClaimId id) {
  auto& claim = *find(id);
  const auto& name = claim.spec.folder;
  auto& folder = folder_of(claim);
  if (claim.spec.queue == Queue::skip && needs_order(claim.spec.kind) && claim.attempts == 0 &&
      !(folder.view.is_usable() && folder.view.empty())) {
    send_if_free(id);
    return;
  }
  claim.stage = Stage::creating;
  claim.sent_at = next_sequence();
  connection_.create_ticket(name + '/' + claim.prefix, claim.spec.value,
                            [this, id](const Reply& reply) { created(id, reply); });
  if (!needs_order(claim.spec.kind)) {
    return;
  }
  if (!folder.view.is_usable()) {
    refresh(name, folder);  // Sent right behind the creation, so that both replies arrive together.
  }
  if (recent_folders_.size() >= recent_folders_max) {
    recent_folders_.clear();
  }
  if (!recent_folders_.insert(name).second) {
    watch_folder(name, folder);
  }
}

/// A request that does not wait first lists the queue, so that it leaves no node behind if a
/// conflict exists.
void Session::send_if_free(ClaimId id) {
  auto& claim = *find(id);
  ++claim.attempts;
  // No node is being created; the stage marks the claim busy. After a connection loss it starts
  // again.
  claim.stage = Stage::creating;
  connection_.sync([](const Reply&) {});
  connection_.list(claim.spec.folder, Connection::Watch::no, [this, id](const Reply& reply) {
    auto* const waiting = find(id);
    if (waiting == nullptr || is_session_over(reply.code)) {
      return;
    }
    waiting->stage = Stage::unsent;
    if (waiting->is_withdrawn) {
      erase(id)->on_removed({});
    } else if (is_connection_lost(reply.code)) {
      waiting->attempts = 0;
    } else if (reply.code != ZOK && reply.code != ZNONODE) {
      reject(id, error_from(reply.code, waiting->spec.folder));
    } else {
      QueueView seen;
      seen.replace(reply.names);
      if (seen.conflicting_with(waiting->spec.kind) != nullptr) {
        reject(id, {.code = Errc::would_block});
      } else {
        send(id);
      }
    }
  });
}

// A missing folder is created and the creation repeated: container folders disappear when they are
// empty.
void Session::created(ClaimId id, const Reply& reply) {
  auto* const claim = find(id);
  if (claim == nullptr || is_session_over(reply.code)) {
    return;
  }
  if (reply.code == ZOK) {
    confirm_created(id, *claim, reply);
  } else if (is_connection_lost(reply.code)) {
    claim->stage = Stage::unconfirmed;
    ++unconfirmed_;
  } else if (reply.code == ZNONODE && ++claim->attempts <= create_attempts_max) {
    claim->stage = Stage::unsent;
    if (claim->is_withdrawn) {
      erase(id)->on_removed({});
      return;
    }
    claim->stage = Stage::creating;
    create_folder(
        claim->spec.folder,
        [this, id](int code) {
          auto* const again = find(id);
          if (again == nullptr || is_session_over(code)) {
            return;
          }
          again->stage = Stage::unsent;
          if (again->is_withdrawn) {
            erase(id)->on_removed({});
          } else if (code == ZOK) {
            send(id);
          } else if (!is_connection_lost(code)) {
            reject(id, error_from(code, again->spec.folder));
          }
        },
        depth_max);
  } else if (claim->is_withdrawn) {
    erase(id)->on_removed({});
  } else {
    reject(id, error_from(reply.code, claim->spec.folder));
  }
}

void Session::confirm_created(ClaimId id, Claim& claim, const Reply& reply) {
  const auto ticket = ticket_of(last_of(reply.path));
  if (!ticket || reply.ephemeral_owner != connection_.session()) {
    // A node of another session does not expire with this one.
    reject(id, {.code = Errc::unavailable,
                .detail = claim.spec.folder + ": received a node of another session; is a proxy "
                                              "between us and ZooKeeper?"});
    return;
  }
  claim.stage = Stage::exists;
  claim.node = last_of(reply.path);
  claim.ticket = *ticket;
  claim.token = FencingToken{static_cast<std::uint64_t>(reply.czxid)};
  by_path_[claim.spec.folder + '/' + claim.node] = id;
  auto& folder = folder_of(claim);
  ++folder.anchors;
  if (needs_order(claim.spec.kind)) {
    folder.view.add({.node = claim.node, .ticket = claim.ticket, .ours = id});
  }
  if (claim.is_withdrawn) {
    send_delete(id, claim);
    return;
  }
  watch_own_later(id);
  if (needs_order(claim.spec.kind)) {
    evaluate(id, Knowledge::stale);
  } else {
    grant(id, claim);
  }
}

/// REQUIRES: no node of the claim exists, or none that could be found again.
void Session::reject(ClaimId id, Error why) {
  const auto claim = erase(id);
  if (claim->is_withdrawn) {
    claim->on_removed(std::unexpected(std::move(why)));
  } else {
    claim->on_decision(std::unexpected(std::move(why)));
  }
}

void Session::send_delete(ClaimId id, Claim& claim) {
  if (claim.is_delete_sent || !is_connected()) {
    return;
  }
  claim.is_delete_sent = true;
  remove_anchor(folder_of(claim));
  deletes_.add(claim.spec.folder + '/' + claim.node,
               [this, id](const Reply& reply) { delete_done(id, reply); });
}

// After a lost reply a missing node means that the first deletion succeeded.
void Session::delete_done(ClaimId id, const Reply& reply) {
  auto* const claim = find(id);
  if (claim == nullptr || is_session_over(reply.code)) {
    return;
  }
  if (is_connection_lost(reply.code)) {
    claim->is_delete_sent = false;
    claim->is_delete_unconfirmed = true;
    // Conservative: the node may still exist. After a reconnect the folder is listed anyway.
    ++folder_of(*claim).anchors;
    return;
  }
  Result<void> answer;
  if (reply.code == ZNONODE && !claim->is_delete_unconfirmed) {
    answer = fail(Errc::not_held);
  } else if (reply.code != ZOK && reply.code != ZNONODE) {
    answer = std::unexpected(error_from(reply.code, claim->spec.folder));
  }
  const auto name = claim->spec.folder;
  const auto node = claim->node;
  const auto ended = erase(id);
  node_deleted(name, node);
  if (ended->is_withdrawn) {
    ended->on_removed(std::move(answer));
  } else {
    ended->on_decision(std::unexpected(*std::move(ended->rejection)));
  }
}

/// Removes a claim from all tables. The view of the queue is updated separately.
std::unique_ptr<Session::Claim> Session::erase(ClaimId id) {
  const auto it = claims_.find(id);
  auto claim = std::move(it->second);
  claims_.erase(it);
  auto& folder = folder_of(*claim);
  unconfirmed_ -= claim->stage == Stage::unconfirmed ? 1 : 0;
  if (claim->stage == Stage::exists) {
    by_path_.erase(claim->spec.folder + '/' + claim->node);
    if (!claim->is_delete_sent) {
      remove_anchor(folder);
    }
  }
  if (--folder.claims == 0 && !folder.is_watched && !folder.is_watch_pending) {
    // Without claims in the folder no waiter needs node_deleted().
    folders_.erase(claim->spec.folder);
  }
  return claim;
}

// On ZNONODE the parent is created first, recursively, and then the folder again.
void Session::create_folder(const std::string& path, std::move_only_function<void(int)> made,
                            int attempts) {
  connection_.create_folder(
      path, folder_kind_,
      [this, path, made = std::move(made), attempts](const Reply& reply) mutable {
        if (is_ended_) {
          return;
        }
        const auto parent = std::string(parent_of(path));
        if (reply.code == ZOK || reply.code == ZNODEEXISTS) {
          made(ZOK);
        } else if (reply.code == ZUNIMPLEMENTED &&
                   folder_kind_ == Connection::FolderKind::container) {
          folder_kind_ = Connection::FolderKind::persistent;
          create_folder(path, std::move(made), attempts);
        } else if (reply.code == ZNONODE && !parent.empty() && attempts > 0) {
          create_folder(
              parent,
              [this, path, made = std::move(made), attempts](int code) mutable {
                if (code == ZOK) {
                  create_folder(path, std::move(made), attempts - 1);
                } else {
                  made(code);
                }
              },
              attempts - 1);
        } else {
          made(reply.code);
        }
      });
}

Session::Claim* Session::find(ClaimId id) {
  const auto it = claims_.find(id);
  return is_ended_ || it == claims_.end() ? nullptr : it->second.get();
}

Session::Claim* Session::find_wanted(ClaimId id) {
  auto* const claim = find(id);
  return claim == nullptr || claim->is_withdrawn || claim->rejection ? nullptr : claim;
}

}  // namespace tenure::backends::zookeeper
