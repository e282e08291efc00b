#include <algorithm>
#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/faults.hpp"
#include "backends/zookeeper/session.hpp"

// Who may go: what we know of a queue, and whom we have to watch for the rest.

namespace tenure::backends::zookeeper {
namespace {

/// Folders whose own end we would be told, so that what we know of them stays good while we have no
/// node there. Others are listed again each time.
constexpr std::size_t guards_max = 1024;

}  // namespace

void Session::look(const std::string& name, Folder& folder) {
  if (folder.asked != 0) {
    folder.is_list_wanted = true;
    return;
  }
  folder.asked = tick();
  link_.list(name, Link::Watch::no, [this, name, asked = folder.asked](const Reply& reply) {
    looked(name, asked, reply);
  });
}

/// `asked`: when. A list that was asked for before the connection broke may come over the next one,
/// and without the sync that goes before what is asked there: it counts for nothing.
void Session::looked(const std::string& name, std::uint64_t asked, const Reply& reply) {
  const auto it = folders_.find(name);
  if (is_over_ || it == folders_.end() || is_over(reply.code) || it->second.asked != asked) {
    return;
  }
  auto& folder = it->second;
  folder.asked = 0;
  const bool is_wanted_again = std::exchange(folder.is_list_wanted, false);
  if (is_lost(reply.code)) {
    return;  // All is listed when there is a connection again.
  }
  const bool is_refused = reply.code != ZOK && reply.code != ZNONODE;
  if (!is_refused) {
    folder.view.replace(reply.names);
  }
  const absl::flat_hash_set<std::string_view> there(reply.names.begin(), reply.names.end());
  for (const auto id : folder.view.ours()) {
    auto* const claim = find(id);
    if (claim == nullptr || claim->is_leaving || claim->refusal) {
      continue;
    }
    if (is_refused && !claim->may_go) {
      turn_away(id, *claim, error_from(reply.code, name));
    } else if (!is_refused && claim->since < asked && !there.contains(claim->node)) {
      taken(id);
    } else if (!is_refused) {
      judge(id, Knowledge::fresh);
    }
  }
  if (!is_refused) {
    find_again(name, reply);
  }
  const auto again = folders_.find(name);
  if (is_wanted_again && again != folders_.end() && again->second.claims > 0) {
    look(name, again->second);
  }
}

/// Nodes whose creation was not answered, by the names that nobody else can have.
void Session::find_again(const std::string& name, const Reply& reply) {
  if (lost_ == 0) {
    return;
  }
  std::vector<ClaimId> lost;
  for (const auto& [id, claim] : claims_) {
    if (claim->stage == Stage::lost && claim->wish.folder == name) {
      lost.push_back(id);
    }
  }
  for (const auto id : lost) {
    auto& claim = *find(id);
    const auto found = std::ranges::find_if(
        reply.names, [&](std::string_view one) { return one.starts_with(claim.prefix); });
    if (found != reply.names.end()) {
      --lost_;
      claim.stage = Stage::creating;
      const auto path = name + '/' + std::string(*found);
      link_.get(path, Link::Watch::no, [this, id, path](const Reply& seen) {
        auto known = seen;
        known.path = path;
        created(id, known);
      });
    } else if (claim.is_leaving) {
      forget(id)->left({});
    } else {
      --lost_;
      claim.stage = Stage::unsent;
      send(id);
    }
  }
}

void Session::judge(ClaimId id, Knowledge knowledge) {
  auto* const claim = find(id);
  if (claim == nullptr || claim->stage != Stage::there || claim->may_go || claim->is_leaving ||
      claim->refusal) {
    return;
  }
  auto& folder = folder_of(*claim);
  const auto* const self = folder.view.find(claim->node);
  if (self == nullptr || !folder.view.covers(claim->ticket.sequence)) {
    look(claim->wish.folder, folder);
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
  if (ours != nullptr && (ours->is_leaving || ours->refusal)) {
    return;  // It will be gone in a moment, and then we are asked again.
  }
  const bool is_sure = ours != nullptr || knowledge == Knowledge::fresh;
  if (claim->wish.queue == Queue::skip && is_sure) {
    turn_away(id, *claim, {.code = Errc::would_block});
    return;
  }
  const bool will_know = ours != nullptr || folder.watched.contains(blocker->node);
  if (will_know && claim->wish.queue == Queue::wait) {
    return;
  }
  if (knowledge == Knowledge::fresh) {
    watch(claim->wish.folder, folder, blocker->node);
  } else {
    look(claim->wish.folder, folder);  // It may be gone by now, and others with it.
  }
}

void Session::grant(ClaimId /*id*/, Claim& claim) {
  claim.may_go = true;
  std::exchange(claim.verdict, nullptr)(Place{.token = claim.token, .position = claim.position});
}

void Session::turn_away(ClaimId id, Claim& claim, Error why) {
  claim.refusal = std::move(why);
  remove(id, claim);
}

void Session::watch(const std::string& name, Folder& folder, const std::string& node) {
  folder.watched.emplace(node, false);
  link_.get(name + '/' + node, Link::Watch::yes, [this, name, node](const Reply& reply) {
    const auto it = folders_.find(name);
    if (is_over_ || it == folders_.end()) {
      return;
    }
    if (reply.code == ZOK) {
      it->second.watched.insert_or_assign(node, true);
      return;
    }
    it->second.watched.erase(node);
    if (reply.code == ZNONODE) {
      gone(name, node);  // 002.041: retry at once.
    } else if (!is_lost(reply.code) && !is_over(reply.code)) {
      for (const auto id : it->second.view.ours()) {
        if (auto* const claim = find(id);
            claim != nullptr && !claim->may_go && !claim->is_leaving && !claim->refusal) {
          turn_away(id, *claim, error_from(reply.code, name + '/' + node));
        }
      }
    }
  });
}

void Session::gone(const std::string& name, const std::string& node) {
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
  for (const auto id : folder.view.behind(ticket)) {
    judge(id, Knowledge::old);
  }
}

void Session::guard(const std::string& name, Folder& folder) {
  if (folder.is_guarded || folder.is_guard_asked || guarded_ >= guards_max) {
    return;
  }
  folder.is_guard_asked = true;
  ++guarded_;
  link_.get(name, Link::Watch::yes, [this, name](const Reply& reply) {
    const auto it = folders_.find(name);
    if (is_over_ || it == folders_.end()) {
      return;
    }
    auto& folder_now = it->second;
    if (!std::exchange(folder_now.is_guard_asked, false)) {
      return;  // The connection broke meanwhile, and with it all guards are gone.
    }
    folder_now.is_guarded = reply.code == ZOK;
    if (!folder_now.is_guarded) {
      --guarded_;
    }
    if (folder_now.claims == 0 && !folder_now.is_guarded) {
      folders_.erase(it);
    } else if (folder_now.anchors == 0) {
      folder_now.view.forget();  // It may be another folder than the one we knew.
    }
  });
}

void Session::lift_anchor(Folder& folder) {
  if (--folder.anchors == 0 && !folder.is_guarded) {
    folder.view.forget();
  }
}

}  // namespace tenure::backends::zookeeper
