#include "backends/etcd/key_watches.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tenure::backends::etcd {
namespace {

/// Number of watches of deleted keys that stay registered: they cost etcd nothing, while each
/// cancellation is a request. Beyond it the stream is opened again, which drops all of them.
constexpr std::size_t spent_max = 64;

}  // namespace

KeyWatches::Id KeyWatches::add(Target target, Callback callback) {
  const auto id = ++last_;
  watches_.emplace(id, Watch{.target = std::move(target), .callback = std::move(callback)});
  // Restart only if it drops at least as many watches as it recreates.
  if (spent_ >= std::max(spent_max, watches_.size())) {
    restart();
  } else if (connection_->is_up()) {
    create(id);
  }
  return id;
}

void KeyWatches::remove(Id id) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) {
    return;
  }
  // A watch that is not created yet is cancelled in created().
  if (it->second.is_spent) {
    by_watch_id_.erase(it->second.watch_id);
    ++spent_;
  } else if (it->second.watch_id >= 0) {
    cancel(it->second.watch_id);
  }
  watches_.erase(it);
}

std::int64_t KeyWatches::delivered_revision(Id id) const {
  const auto it = watches_.find(id);
  return it == watches_.end() ? 0 : it->second.target.from - 1;
}

void KeyWatches::clear() {
  watches_.clear();
  disconnected();
}

void KeyWatches::connected() {
  std::vector<Id> ids;
  for (const auto& [id, watch] : watches_) {
    ids.push_back(id);
  }
  for (const auto id : ids) {
    create(id);
  }
}

void KeyWatches::restart() {
  disconnected();
  if (connection_->is_up()) {
    connected();
  }
}

void KeyWatches::disconnected() {
  if (const auto stream = std::exchange(stream_, nullptr)) {
    stream->detach();
  }
  requested_.clear();
  by_watch_id_.clear();
  spent_ = 0;
  for (auto& [id, watch] : watches_) {
    watch.watch_id = -1;
  }
}

void KeyWatches::create(Id id) {
  if (!stream_) {
    stream_ = std::make_shared<MessageStream<pb::WatchResponse>>(
        [this](const pb::WatchResponse& response) { received(response); },
        [this](const grpc::Status& status) { ended(status); });
    connection_->begin("/etcdserverpb.Watch/Watch", stream_);
  }
  if (!stream_) {
    return;  // The stream failed at once.
  }
  const auto& target = watches_.at(id).target;
  pb::WatchRequest request;
  auto& create = *request.mutable_create();
  create.set_key(target.key);
  create.set_range_end(target.end);
  if (target.events == Events::deletes) {
    create.add_filters(pb::WatchCreate::NOPUT);
  }
  requested_.push_back(id);
  stream_->send(request);
}

void KeyWatches::cancel(std::int64_t watch_id) {
  by_watch_id_.erase(watch_id);
  if (stream_) {
    pb::WatchRequest request;
    request.mutable_cancel()->set_watch_id(watch_id);
    stream_->send(request);
  }
}

void KeyWatches::received(const pb::WatchResponse& response) {
  if (response.created()) {
    created(response);
    return;
  }
  const auto it = by_watch_id_.find(response.watch_id());
  if (it == by_watch_id_.end()) {
    return;  // The watch was cancelled before.
  }
  response.canceled() ? canceled(it->second, response) : handle_events(it->second, response);
}

// etcd confirms watches in request order. A watch created at a later revision than requested may
// have missed changes.
void KeyWatches::created(const pb::WatchResponse& response) {
  if (requested_.empty()) {
    connection_->recover(
        {.recovery = Recovery::other_member, .error = malformed_reply(connection_->server())});
    return;
  }
  const auto id = requested_.front();
  requested_.pop_front();
  const auto it = watches_.find(id);
  if (response.canceled()) {
    if (it != watches_.end()) {
      canceled(id, response);
    }
  } else if (it == watches_.end()) {
    cancel(response.watch_id());
  } else {
    it->second.watch_id = response.watch_id();
    by_watch_id_.emplace(response.watch_id(), id);
    if (response.header().revision() >= it->second.target.from) {
      check_missed_changes(id);
    }
  }
}

void KeyWatches::check_missed_changes(Id id) {
  const auto& watch = watches_.at(id);
  if (!watch.target.end.empty()) {
    notify(id, Change::changed, watch.target.from);
    return;
  }
  pb::RangeRequest request;
  request.set_key(watch.target.key);
  request.set_keys_only(true);
  // This member has just reported a newer revision, so its local state is new enough.
  request.set_serializable(true);
  connection_->call<pb::RangeResponse>(
      "/etcdserverpb.KV/Range", request,
      [this, id, stream = stream_, watch_id = watch.watch_id](const grpc::Status& status,
                                                              const pb::RangeResponse& response) {
        const auto it = watches_.find(id);
        if (stream_ != stream || it == watches_.end() || it->second.watch_id != watch_id) {
          return;  // The watch ended or moved to another connection.
        }
        if (status.ok()) {
          missed_changes_checked(id, response);
        } else {
          cancel(watch_id);
          end(id, classify(status, connection_->server()));
        }
      });
}

// A key created at or after the start revision replaced the watched one, so the watched key was
// deleted.
void KeyWatches::missed_changes_checked(Id id, const pb::RangeResponse& response) {
  const auto& watch = watches_.at(id);
  const auto from = watch.target.from;
  const auto revision = response.header().revision();
  if (response.kvs_size() == 0 ||
      (watch.target.events == Events::deletes && response.kvs(0).create_revision() >= from)) {
    notify(id, Change::deleted, revision);
  } else if (watch.target.events == Events::changes && response.kvs(0).mod_revision() >= from) {
    notify(id, Change::changed, revision);
  }
}

void KeyWatches::canceled(Id id, const pb::WatchResponse& response) {
  by_watch_id_.erase(response.watch_id());
  const bool is_unknown = response.compact_revision() > 0 || response.cancel_reason().empty();
  end(id, is_unknown ? std::nullopt
                     : std::optional(classify(response.cancel_reason(), connection_->server())));
}

/// `why`: empty if etcd compacted the revisions.
void KeyWatches::end(Id id, const std::optional<Failure>& why) {
  const auto it = watches_.find(id);
  auto callback = std::move(it->second.callback);
  watches_.erase(it);
  ++notifications_;
  if (why && why->recovery == Recovery::none) {
    callback(std::unexpected(why->error));
    return;
  }
  if (why) {
    connection_->recover(*why);
  }
  callback(Change::unknown);
}

void KeyWatches::handle_events(Id id, const pb::WatchResponse& response) {
  for (const auto& event : response.events()) {
    const auto it = watches_.find(id);
    if (it == watches_.end()) {
      return;  // The callback removed the watch.
    }
    const auto revision = event.kv().mod_revision();
    if (revision >= it->second.target.from) {
      notify(id, event.type() == pb::Event::DELETE ? Change::deleted : Change::changed, revision);
    }
  }
}

/// Reports a change up to this revision.
void KeyWatches::notify(Id id, Change change, std::int64_t revision) {
  auto& watch = watches_.at(id);
  watch.target.from = std::max(watch.target.from, revision + 1);
  watch.is_spent = change == Change::deleted && watch.target.end.empty() && watch.watch_id >= 0;
  ++notifications_;
  // The callback may remove its own watch, so it must not be destroyed while it runs.
  auto callback = std::move(watch.callback);
  callback(change);
  if (const auto still = watches_.find(id); still != watches_.end()) {
    still->second.callback = std::move(callback);
  }
}

void KeyWatches::ended(const grpc::Status& status) {
  stream_.reset();
  disconnected();
  connection_->recover(classify_stream(status, connection_->server()));
}

}  // namespace tenure::backends::etcd
