#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/faults.hpp"
#include "backends/zookeeper/paths.hpp"
#include "backends/zookeeper/session.hpp"

// What happens to a session: connections, and what servers say unasked.

namespace tenure::backends::zookeeper {
namespace {

/// A node of ours that is older than this is watched, so that we hear if somebody deletes it. Most
/// are given back sooner, and cost no question.
constexpr std::chrono::milliseconds mind_after{250};

}  // namespace

void Session::link_changed(Link::State state) {
  if (is_over_) {
    return;
  }
  if (state == Link::State::connected) {
    calls_.changed(state);
    if (!is_over_) {
      connected();
    }
    return;
  }
  disconnected();
  calls_.changed(state);
}

void Session::disconnected() {
  guarded_ = 0;
  for (auto it = folders_.begin(); it != folders_.end();) {
    auto& folder = it->second;
    folder.view.forget();
    folder.asked = 0;
    folder.is_list_wanted = false;
    folder.is_guarded = false;
    folder.is_guard_asked = false;
    it = folder.claims == 0 ? folders_.erase(it) : std::next(it);
  }
}

void Session::connected() {
  // What the last connection left behind is decided by the leader before we look.
  link_.sync([](const Reply&) {});
  std::vector<ClaimId> known;
  for (const auto& [id, claim] : claims_) {
    known.push_back(id);
  }
  for (const auto id : known) {
    auto* const claim = find(id);
    if (claim == nullptr) {
      continue;
    }
    if (claim->stage == Stage::unsent) {
      send(id);
    } else if (claim->stage == Stage::there && (claim->is_leaving || claim->refusal)) {
      remove(id, *claim);
    }
  }
  for (auto& [name, folder] : folders_) {
    if (folder.claims > 0) {
      look(name, folder);
    }
  }
  for (auto& job : std::exchange(when_connected_, {})) {
    job();
  }
}

void Session::happened(Link::Event event, std::string_view path) {
  if (is_over_) {
    return;
  }
  if (event == Link::Event::children) {
    calls_.children(std::string(path));
    return;
  }
  if (const auto it = folders_.find(path); it != folders_.end()) {
    auto& folder = it->second;
    guarded_ -= folder.is_guarded ? 1 : 0;
    folder.is_guarded = false;
    if (event == Link::Event::gone || folder.anchors == 0) {
      folder.view.forget();
    }
    if (folder.claims == 0) {
      folders_.erase(it);
    }
  }
  const std::string name(parent_of(path));
  const std::string node(last_of(path));
  const auto ours = by_path_.find(std::string(path));
  if (ours != by_path_.end() && event == Link::Event::gone) {
    taken(ours->second);
  } else if (ours != by_path_.end()) {
    mind(ours->second);
  } else if (event == Link::Event::gone) {
    gone(name, node);
  } else if (const auto it = folders_.find(name);
             it != folders_.end() && it->second.watched.erase(node) > 0) {
    look(name, it->second);
  }
}

void Session::taken(ClaimId id) {
  auto* const claim = find(id);
  if (claim == nullptr || claim->is_leaving || claim->refusal) {
    return;  // The answer to our own deletion is on its way.
  }
  const auto name = claim->wish.folder;
  const auto node = claim->node;
  const auto ended = forget(id);
  gone(name, node);
  if (ended->may_go) {
    calls_.taken(id);
  } else {
    ended->verdict(fail(Errc::lease_lost, name + ": somebody deleted our place in the queue"));
  }
}

void Session::mind_later(ClaimId id) {
  to_mind_.emplace_back(Chores::Clock::now() + mind_after, id);
  if (!std::exchange(is_minding_, true)) {
    around_.later(to_mind_.front().first, [this] { mind_now(); });
  }
}

void Session::mind_now() {
  const auto now = Chores::Clock::now();
  while (!to_mind_.empty() && to_mind_.front().first <= now) {
    const auto id = to_mind_.front().second;
    to_mind_.pop_front();
    mind(id);
  }
  is_minding_ = !to_mind_.empty();
  if (is_minding_) {
    around_.later(to_mind_.front().first, [this] { mind_now(); });
  }
}

void Session::mind(ClaimId id) {
  auto* const claim = find(id);
  if (claim == nullptr || claim->stage != Stage::there || claim->is_leaving || claim->refusal) {
    return;
  }
  const auto path = claim->wish.folder + '/' + claim->node;
  ask([this, path](Answer answer) { link_.get(path, Link::Watch::yes, std::move(answer)); },
      [this, id](const Reply& reply) {
        if (reply.code == ZNONODE) {
          taken(id);
        }
      });
}

void Session::ask(Question question, Answer answer) {
  if (!is_connected()) {
    when_connected_.push_back(
        [this, question = std::move(question), answer = std::move(answer)]() mutable {
          ask(std::move(question), std::move(answer));
        });
    return;
  }
  auto told = [this, question, answer = std::move(answer)](const Reply& reply) mutable {
    if (is_over_ || is_over(reply.code)) {
      return;
    }
    if (is_lost(reply.code)) {
      when_connected_.push_back(
          [this, question = std::move(question), answer = std::move(answer)]() mutable {
            ask(std::move(question), std::move(answer));
          });
      return;
    }
    answer(reply);
  };
  question(std::move(told));
}

void Session::list(std::string folder, Link::Watch watch, Answer answer) {
  ask([this, folder = std::move(folder),
       watch](Answer told) { link_.list(folder, watch, std::move(told)); },
      std::move(answer));
}

void Session::get(std::string path, Answer answer) {
  ask([this,
       path = std::move(path)](Answer told) { link_.get(path, Link::Watch::no, std::move(told)); },
      std::move(answer));
}

}  // namespace tenure::backends::zookeeper
