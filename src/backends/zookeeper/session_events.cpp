#include <utility>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/errors.hpp"
#include "backends/zookeeper/paths.hpp"
#include "backends/zookeeper/session.hpp"

// Connection state changes and watch events.

namespace tenure::backends::zookeeper {
namespace {

/// Age at which an own node is watched for deletion by another client. Most nodes are deleted
/// before, which saves one request for each.
constexpr std::chrono::milliseconds watch_own_delay{250};

}  // namespace

void Session::state_changed(Connection::State state) {
  if (is_ended_) {
    return;
  }
  if (state == Connection::State::connected) {
    callbacks_.changed(state);
    if (!is_ended_) {
      connected();
    }
    return;
  }
  disconnected();
  callbacks_.changed(state);
}

// Watches may have fired unseen, so no view survives a connection loss.
void Session::disconnected() {
  folder_watches_ = 0;
  for (auto it = folders_.begin(); it != folders_.end();) {
    auto& folder = it->second;
    folder.view.forget();
    folder.list_requested_at = 0;
    folder.needs_relist = false;
    folder.is_watched = false;
    folder.is_watch_pending = false;
    it = folder.claims == 0 ? folders_.erase(it) : std::next(it);
  }
}

void Session::connected() {
  // The sync makes the leader commit requests of the previous connection before the folders are
  // listed.
  connection_.sync([](const Reply&) {});
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
    } else if (claim->stage == Stage::exists && (claim->is_withdrawn || claim->rejection)) {
      send_delete(id, *claim);
    }
  }
  for (auto& [name, folder] : folders_) {
    if (folder.claims > 0) {
      refresh(name, folder);
    }
  }
  for (auto& job : std::exchange(when_connected_, {})) {
    job();
  }
}

// ZooKeeper watches fire once: an event uses up the watch, so an own or blocking node that still
// exists is watched again.
void Session::node_event(Connection::Event event, std::string_view path) {
  if (is_ended_) {
    return;
  }
  if (event == Connection::Event::children) {
    callbacks_.children(std::string(path));
    return;
  }
  if (const auto it = folders_.find(path); it != folders_.end()) {
    auto& folder = it->second;
    folder_watches_ -= folder.is_watched ? 1 : 0;
    folder.is_watched = false;
    if (event == Connection::Event::deleted || folder.anchors == 0) {
      folder.view.forget();
    }
    if (folder.claims == 0) {
      folders_.erase(it);
    }
  }
  const std::string name(parent_of(path));
  const std::string node(last_of(path));
  const auto ours = by_path_.find(std::string(path));
  if (ours != by_path_.end() && event == Connection::Event::deleted) {
    deleted_externally(ours->second);
  } else if (ours != by_path_.end()) {
    watch_own(ours->second);
  } else if (event == Connection::Event::deleted) {
    node_deleted(name, node);
  } else if (const auto it = folders_.find(name);
             it != folders_.end() && it->second.watched.erase(node) > 0) {
    refresh(name, it->second);
  }
}

void Session::deleted_externally(ClaimId id) {
  auto* const claim = find_wanted(id);
  if (claim == nullptr) {
    return;  // The reply to the own deletion is in flight.
  }
  const auto name = claim->spec.folder;
  const auto node = claim->node;
  const auto ended = erase(id);
  node_deleted(name, node);
  if (ended->is_granted) {
    callbacks_.deleted_externally(id);
  } else {
    ended->on_decision(
        fail(Errc::lease_lost, name + ": another client deleted the queue node of this client"));
  }
}

void Session::watch_own_later(ClaimId id) {
  own_watches_due_.emplace_back(TimerThread::Clock::now() + watch_own_delay, id);
  if (!std::exchange(is_watch_timer_set_, true)) {
    environment_.later(own_watches_due_.front().first, [this] { watch_own_due(); });
  }
}

void Session::watch_own_due() {
  const auto now = TimerThread::Clock::now();
  while (!own_watches_due_.empty() && own_watches_due_.front().first <= now) {
    const auto id = own_watches_due_.front().second;
    own_watches_due_.pop_front();
    watch_own(id);
  }
  is_watch_timer_set_ = !own_watches_due_.empty();
  if (is_watch_timer_set_) {
    environment_.later(own_watches_due_.front().first, [this] { watch_own_due(); });
  }
}

void Session::watch_own(ClaimId id) {
  auto* const claim = find_wanted(id);
  if (claim == nullptr || claim->stage != Stage::exists) {
    return;
  }
  const auto path = claim->spec.folder + '/' + claim->node;
  call_with_retry(
      [this, path](ReplyCallback on_reply) {
        connection_.get(path, Connection::Watch::yes, std::move(on_reply));
      },
      [this, id](const Reply& reply) {
        if (reply.code == ZNONODE) {
          deleted_externally(id);
        }
      });
}

void Session::call_with_retry(Request request, ReplyCallback on_reply) {
  const auto call_when_connected = [this](Request again, ReplyCallback callback) {
    when_connected_.push_back(
        [this, again = std::move(again), callback = std::move(callback)]() mutable {
          call_with_retry(std::move(again), std::move(callback));
        });
  };
  if (!is_connected()) {
    call_when_connected(std::move(request), std::move(on_reply));
    return;
  }
  request([this, call_when_connected, request,
           on_reply = std::move(on_reply)](const Reply& reply) mutable {
    if (is_ended_ || is_session_over(reply.code)) {
      return;
    }
    if (is_connection_lost(reply.code)) {
      call_when_connected(std::move(request), std::move(on_reply));
      return;
    }
    on_reply(reply);
  });
}

void Session::list(std::string folder, Connection::Watch watch, ReplyCallback on_reply) {
  call_with_retry(
      [this, folder = std::move(folder), watch](ReplyCallback handler) {
        connection_.list(folder, watch, std::move(handler));
      },
      std::move(on_reply));
}

void Session::get(std::string path, ReplyCallback on_reply) {
  call_with_retry(
      [this, path = std::move(path)](ReplyCallback handler) {
        connection_.get(path, Connection::Watch::no, std::move(handler));
      },
      std::move(on_reply));
}

}  // namespace tenure::backends::zookeeper
