#include "backends/zookeeper/session.hpp"

#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/faults.hpp"
#include "backends/zookeeper/paths.hpp"

// The life of a node: made, perhaps lost sight of, there, deleted.

namespace tenure::backends::zookeeper {
namespace {

/// A folder that is empty may be deleted again and again just before we come.
constexpr int attempts_max = 8;
/// Folders that are missing one above the other; names and chroots have fewer parts.
constexpr int depth_max = 1100;

/// Names to remember, by which it is seen that one comes again.
constexpr std::size_t used_max = 4096;

bool needs_order(Kind kind) {
  return kind != Kind::lease;
}

}  // namespace

Session::Session(Surroundings around, std::chrono::milliseconds asked, Calls calls)
    : around_(std::move(around)),
      asked_(asked),
      calls_(std::move(calls)),
      removals_(link_),
      link_(around_.desk, around_.chores,
            {.changed = [this](Link::State state) { link_changed(state); },
             .happened = [this](Link::Event event,
                                std::string_view path) { happened(event, path); }}) {}

ClaimId Session::claim(Wish wish, Verdict verdict) {
  const ClaimId id{++last_claim_};
  auto claim = std::make_unique<Claim>();
  claim->prefix = fresh_prefix(wish.kind);
  claim->wish = std::move(wish);
  claim->verdict = std::move(verdict);
  ++folder_of(*claim).claims;
  claims_.emplace(id, std::move(claim));
  if (is_connected()) {
    send(id);
  }
  return id;
}

bool Session::is_there(ClaimId id) const {
  const auto it = claims_.find(id);
  return it != claims_.end() && it->second->stage == Stage::there;
}

bool Session::is_ours_in_the_way(const std::string& folder, Kind kind) const {
  const auto it = folders_.find(folder);
  if (it == folders_.end()) {
    return false;
  }
  const auto* const other = it->second.view.in_the_way_of(kind);
  if (other == nullptr || other->ours == ClaimId{}) {
    return false;
  }
  const auto& claim = *claims_.at(other->ours);
  return !claim.is_leaving && !claim.refusal;
}

void Session::leave(ClaimId id, Left left) {
  auto* const claim = find(id);
  if (claim == nullptr) {
    left(fail(Errc::not_held));
    return;
  }
  claim->is_leaving = true;
  claim->verdict = nullptr;
  claim->left = std::move(left);
  if (claim->stage == Stage::there) {
    remove(id, *claim);
  } else if (claim->stage == Stage::unsent) {
    forget(id)->left({});
  } else {
    // When it is known whether it was made.
  }
}

void Session::send(ClaimId id) {
  auto& claim = *find(id);
  const auto& name = claim.wish.folder;
  auto& folder = folder_of(claim);
  if (claim.wish.queue == Queue::skip && needs_order(claim.wish.kind) && claim.attempts == 0 &&
      !(folder.view.is_usable() && folder.view.empty())) {
    send_if_free(id);
    return;
  }
  claim.stage = Stage::creating;
  claim.since = tick();
  link_.create_ticket(name + '/' + claim.prefix, claim.wish.value,
                      [this, id](const Reply& reply) { created(id, reply); });
  if (!needs_order(claim.wish.kind)) {
    return;
  }
  if (!folder.view.is_usable()) {
    look(name, folder);  // Right behind it, so that both answers come together.
  }
  if (used_.size() >= used_max) {
    used_.clear();
  }
  if (!used_.insert(name).second) {
    guard(name, folder);
  }
}

/// Who is not to wait need not leave a trace where somebody is before him.
void Session::send_if_free(ClaimId id) {
  auto& claim = *find(id);
  ++claim.attempts;
  claim.stage = Stage::creating;  // Nothing is, but it is busy; lost, it begins again.
  link_.sync([](const Reply&) {});
  link_.list(claim.wish.folder, Link::Watch::no, [this, id](const Reply& reply) {
    auto* const waiting = find(id);
    if (waiting == nullptr || is_over(reply.code)) {
      return;
    }
    waiting->stage = Stage::unsent;
    if (waiting->is_leaving) {
      forget(id)->left({});
    } else if (is_lost(reply.code)) {
      waiting->attempts = 0;
    } else if (reply.code != ZOK && reply.code != ZNONODE) {
      give_up(id, error_from(reply.code, waiting->wish.folder));
    } else {
      QueueView seen;
      seen.replace(reply.names);
      if (seen.in_the_way_of(waiting->wish.kind) != nullptr) {
        give_up(id, {.code = Errc::would_block});
      } else {
        send(id);
      }
    }
  });
}

void Session::created(ClaimId id, const Reply& reply) {
  auto* const claim = find(id);
  if (claim == nullptr || is_over(reply.code)) {
    return;
  }
  if (reply.code == ZOK) {
    stands(id, *claim, reply);
  } else if (is_lost(reply.code)) {
    claim->stage = Stage::lost;
    ++lost_;
  } else if (reply.code == ZNONODE && ++claim->attempts <= attempts_max) {
    claim->stage = Stage::unsent;
    if (claim->is_leaving) {
      forget(id)->left({});
      return;
    }
    claim->stage = Stage::creating;
    make_folder(
        claim->wish.folder,
        [this, id](int code) {
          auto* const again = find(id);
          if (again == nullptr || is_over(code)) {
            return;
          }
          again->stage = Stage::unsent;
          if (again->is_leaving) {
            forget(id)->left({});
          } else if (code == ZOK) {
            send(id);
          } else if (!is_lost(code)) {
            give_up(id, error_from(code, again->wish.folder));
          }
        },
        depth_max);
  } else if (claim->is_leaving) {
    forget(id)->left({});
  } else {
    give_up(id, error_from(reply.code, claim->wish.folder));
  }
}

void Session::stands(ClaimId id, Claim& claim, const Reply& reply) {
  const auto ticket = ticket_of(last_of(reply.path));
  if (!ticket || reply.ephemeral_owner != link_.session()) {
    // What is not this session's does not live and die with it.
    give_up(id, {.code = Errc::unavailable,
                 .detail = claim.wish.folder + ": a node came back that is not ours; is a proxy "
                                               "between us and ZooKeeper?"});
    return;
  }
  claim.stage = Stage::there;
  claim.node = last_of(reply.path);
  claim.ticket = *ticket;
  claim.token = FencingToken{static_cast<std::uint64_t>(reply.czxid)};
  by_path_[claim.wish.folder + '/' + claim.node] = id;
  auto& folder = folder_of(claim);
  ++folder.anchors;
  if (needs_order(claim.wish.kind)) {
    folder.view.add({.node = claim.node, .ticket = claim.ticket, .ours = id});
  }
  if (claim.is_leaving) {
    remove(id, claim);
    return;
  }
  mind_later(id);
  if (needs_order(claim.wish.kind)) {
    judge(id, Knowledge::old);
  } else {
    grant(id, claim);
  }
}

/// REQUIRES: no node of it is there, or none that we could find again.
void Session::give_up(ClaimId id, Error why) {
  const auto claim = forget(id);
  if (claim->is_leaving) {
    claim->left(std::unexpected(std::move(why)));
  } else {
    claim->verdict(std::unexpected(std::move(why)));
  }
}

void Session::remove(ClaimId id, Claim& claim) {
  if (claim.is_delete_sent || !is_connected()) {
    return;
  }
  claim.is_delete_sent = true;
  lift_anchor(folder_of(claim));
  removals_.add(claim.wish.folder + '/' + claim.node,
                [this, id](const Reply& reply) { removed(id, reply); });
}

void Session::removed(ClaimId id, const Reply& reply) {
  auto* const claim = find(id);
  if (claim == nullptr || is_over(reply.code)) {
    return;
  }
  if (is_lost(reply.code)) {
    claim->is_delete_sent = false;
    claim->was_lost = true;
    ++folder_of(*claim).anchors;  // Perhaps; after a lost connection all is listed anew anyhow.
    return;
  }
  Result<void> answer;
  if (reply.code == ZNONODE && !claim->was_lost) {
    answer = fail(Errc::not_held);
  } else if (reply.code != ZOK && reply.code != ZNONODE) {
    answer = std::unexpected(error_from(reply.code, claim->wish.folder));
  }
  const auto name = claim->wish.folder;
  const auto node = claim->node;
  const auto ended = forget(id);
  gone(name, node);
  if (ended->is_leaving) {
    ended->left(std::move(answer));
  } else {
    ended->verdict(std::unexpected(*std::move(ended->refusal)));
  }
}

/// It is none of ours any more. What the queue thinks of its node is for others to say.
std::unique_ptr<Session::Claim> Session::forget(ClaimId id) {
  const auto it = claims_.find(id);
  auto claim = std::move(it->second);
  claims_.erase(it);
  auto& folder = folder_of(*claim);
  lost_ -= claim->stage == Stage::lost ? 1 : 0;
  if (claim->stage == Stage::there) {
    by_path_.erase(claim->wish.folder + '/' + claim->node);
    if (!claim->is_delete_sent) {
      lift_anchor(folder);
    }
  }
  if (--folder.claims == 0 && !folder.is_guarded && !folder.is_guard_asked) {
    // gone() is not needed where nobody waits.
    folders_.erase(claim->wish.folder);
  }
  return claim;
}

void Session::make_folder(const std::string& path, std::move_only_function<void(int)> made,
                          int attempts) {
  link_.create_folder(
      path, folder_kind_,
      [this, path, made = std::move(made), attempts](const Reply& reply) mutable {
        if (is_over_) {
          return;
        }
        const auto parent = std::string(parent_of(path));
        if (reply.code == ZOK || reply.code == ZNODEEXISTS) {
          made(ZOK);
        } else if (reply.code == ZUNIMPLEMENTED && folder_kind_ == Link::Folder::container) {
          folder_kind_ = Link::Folder::persistent;
          make_folder(path, std::move(made), attempts);
        } else if (reply.code == ZNONODE && !parent.empty() && attempts > 0) {
          make_folder(
              parent,
              [this, path, made = std::move(made), attempts](int code) mutable {
                if (code == ZOK) {
                  make_folder(path, std::move(made), attempts - 1);
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
  return is_over_ || it == claims_.end() ? nullptr : it->second.get();
}

}  // namespace tenure::backends::zookeeper
