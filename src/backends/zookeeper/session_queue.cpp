#include <algorithm>
#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/errors.hpp"
#include "backends/zookeeper/session.hpp"

// Admission: evaluates claims against the view of their queue and watches the blockers.

namespace tenure::backends::zookeeper {
namespace {

/// Maximum number of folder watches. They keep the view of a folder valid while this client has no
/// node there; other folders are listed each time.
constexpr std::size_t folder_watches_max = 1024;

}  // namespace

// At most one list per folder is in flight; changes in between are covered by one more list
// afterwards.
void Session::refresh(const std::string& name, Folder& folder) {
  if (folder.list_requested_at != 0) {
    folder.needs_relist = true;
    return;
  }
  folder.list_requested_at = next_sequence();
  connection_.list(name, Connection::Watch::no,
                   [this, name, requested_at = folder.list_requested_at](const Reply& reply) {
                     refreshed(name, requested_at, reply);
                   });
}

/// `requested_at`: logical time of the request. A list requested before a connection loss can
/// arrive over the next connection without the sync that precedes newer requests, so it is ignored.
void Session::refreshed(const std::string& name, std::uint64_t requested_at, const Reply& reply) {
  const auto it = folders_.find(name);
  if (is_ended_ || it == folders_.end() || is_session_over(reply.code) ||
      it->second.list_requested_at != requested_at) {
    return;
  }
  auto& folder = it->second;
  folder.list_requested_at = 0;
  const bool is_relist_due = std::exchange(folder.needs_relist, false);
  if (is_connection_lost(reply.code)) {
    return;  // All folders are listed after the reconnect.
  }
  const bool is_refused = reply.code != ZOK && reply.code != ZNONODE;
  if (!is_refused) {
    folder.view.replace(reply.names);
  }
  const absl::flat_hash_set<std::string_view> there(reply.names.begin(), reply.names.end());
  for (const auto id : folder.view.ours()) {
    auto* const claim = find_wanted(id);
    if (claim == nullptr) {
      continue;
    }
    if (is_refused && !claim->is_granted) {
      refuse(id, *claim, error_from(reply.code, name));
    } else if (!is_refused && claim->sent_at < requested_at && !there.contains(claim->node)) {
      deleted_externally(id);
    } else if (!is_refused) {
      evaluate(id, Knowledge::fresh);
    }
  }
  if (!is_refused) {
    recover_unconfirmed(name, reply);
  }
  const auto again = folders_.find(name);
  if (is_relist_due && again != folders_.end() && again->second.claims > 0) {
    refresh(name, again->second);
  }
}

/// Resolves claims whose creation reply was lost by their unique names.
void Session::recover_unconfirmed(const std::string& name, const Reply& reply) {
  if (unconfirmed_ == 0) {
    return;
  }
  std::vector<ClaimId> lost;
  for (const auto& [id, claim] : claims_) {
    if (claim->stage == Stage::unconfirmed && claim->spec.folder == name) {
      lost.push_back(id);
    }
  }
  for (const auto id : lost) {
    auto& claim = *find(id);
    const auto found = std::ranges::find_if(
        reply.names, [&](std::string_view one) { return one.starts_with(claim.prefix); });
    if (found != reply.names.end()) {
      --unconfirmed_;
      claim.stage = Stage::creating;
      const auto path = name + '/' + std::string(*found);
      connection_.get(path, Connection::Watch::no, [this, id, path](const Reply& seen) {
        auto known = seen;
        known.path = path;
        created(id, known);
      });
    } else if (claim.is_withdrawn) {
      erase(id)->on_removed({});
    } else {
      --unconfirmed_;
      claim.stage = Stage::unsent;
      send(id);
    }
  }
}

// A blocker seen in a stale view may be gone, so the folder is listed before the blocker is watched
// or a try_lock is refused.
void Session::evaluate(ClaimId id, Knowledge knowledge) {
  auto* const claim = find_wanted(id);
  if (claim == nullptr || claim->stage != Stage::exists || claim->is_granted) {
    return;
  }
  auto& folder = folder_of(*claim);
  const auto* const self = folder.view.find(claim->node);
  if (self == nullptr || !folder.view.covers(claim->ticket.sequence)) {
    refresh(claim->spec.folder, folder);
    return;
  }
  const auto* const blocker = folder.view.blocker_of(*self);
  if (blocker == nullptr) {
    grant(id, *claim);
    return;
  }
  if (claim->position == 0) {
    claim->position = folder.view.position_of(*self);
  }
  const auto* const ours = blocker->ours == ClaimId{} ? nullptr : find(blocker->ours);
  if (ours != nullptr && (ours->is_withdrawn || ours->rejection)) {
    return;  // It is being deleted; its deletion evaluates this claim again.
  }
  const bool is_sure = ours != nullptr || knowledge == Knowledge::fresh;
  if (claim->spec.queue == Queue::skip && is_sure) {
    refuse(id, *claim, {.code = Errc::would_block});
    return;
  }
  const bool will_know = ours != nullptr || folder.watched.contains(blocker->node);
  if (will_know && claim->spec.queue == Queue::wait) {
    return;
  }
  if (knowledge == Knowledge::fresh) {
    watch(claim->spec.folder, folder, blocker->node);
  } else {
    refresh(claim->spec.folder, folder);  // The view is stale: the blocker may be deleted by now.
  }
}

void Session::grant(ClaimId /*id*/, Claim& claim) {
  claim.is_granted = true;
  std::exchange(claim.on_decision,
                nullptr)(Grant{.token = claim.token, .position = claim.position});
}

void Session::refuse(ClaimId id, Claim& claim, Error why) {
  claim.rejection = std::move(why);
  send_delete(id, claim);
}

void Session::watch(const std::string& name, Folder& folder, const std::string& node) {
  folder.watched.emplace(node, false);
  connection_.get(
      name + '/' + node, Connection::Watch::yes, [this, name, node](const Reply& reply) {
        const auto it = folders_.find(name);
        if (is_ended_ || it == folders_.end()) {
          return;
        }
        if (reply.code == ZOK) {
          it->second.watched.insert_or_assign(node, true);
          return;
        }
        it->second.watched.erase(node);
        if (reply.code == ZNONODE) {
          node_deleted(name, node);  // The blocker is gone: evaluate again at once.
        } else if (!is_connection_lost(reply.code) && !is_session_over(reply.code)) {
          for (const auto id : it->second.view.ours()) {
            if (auto* const claim = find_wanted(id); claim != nullptr && !claim->is_granted) {
              refuse(id, *claim, error_from(reply.code, name + '/' + node));
            }
          }
        }
      });
}

// Only the waiters that this node blocked are evaluated, so a release wakes one waiter.
void Session::node_deleted(const std::string& name, const std::string& node) {
  const auto it = folders_.find(name);
  if (it == folders_.end()) {
    return;
  }
  auto& folder = it->second;
  folder.watched.erase(node);
  const auto* const contender = folder.view.find(node);
  if (contender == nullptr) {
    return;
  }
  const auto ticket = contender->ticket;
  folder.view.remove(node);
  for (const auto id : folder.view.waiters_of(ticket)) {
    evaluate(id, Knowledge::stale);
  }
}

void Session::watch_folder(const std::string& name, Folder& folder) {
  if (folder.is_watched || folder.is_watch_pending || folder_watches_ >= folder_watches_max) {
    return;
  }
  folder.is_watch_pending = true;
  ++folder_watches_;
  connection_.get(name, Connection::Watch::yes, [this, name](const Reply& reply) {
    const auto it = folders_.find(name);
    if (is_ended_ || it == folders_.end()) {
      return;
    }
    auto& folder_now = it->second;
    if (!std::exchange(folder_now.is_watch_pending, false)) {
      return;  // The connection was lost, and all watches with it.
    }
    folder_now.is_watched = reply.code == ZOK;
    if (!folder_now.is_watched) {
      --folder_watches_;
    }
    if (folder_now.claims == 0 && !folder_now.is_watched) {
      folders_.erase(it);
    } else if (folder_now.anchors == 0) {
      folder_now.view.forget();  // It may be a new incarnation of the folder.
    }
  });
}

void Session::remove_anchor(Folder& folder) {
  if (--folder.anchors == 0 && !folder.is_watched) {
    folder.view.forget();
  }
}

}  // namespace tenure::backends::zookeeper
