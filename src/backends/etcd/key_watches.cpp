#include "backends/etcd/key_watches.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tenure::backends::etcd {

/// The stream on one connection.
class KeyWatches::Stream final : public h2::Exchange {
 public:
  explicit Stream(std::weak_ptr<KeyWatches*> owner) : owner_(std::move(owner)) {}

 private:
  [[nodiscard]] KeyWatches* owner() {
    const auto owner = owner_.lock();
    return owner && (*owner)->stream_.get() == this ? *owner : nullptr;
  }
  void received(std::string_view message) override {
    pb::WatchResponse response;
    if (!response.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      cancel();
    } else if (auto* const watches = owner()) {
      watches->received(response);
    }
  }
  void ended(const h2::Status& status) override {
    if (auto* const watches = owner()) {
      watches->ended(status);
    }
  }

  std::weak_ptr<KeyWatches*> owner_;
};

KeyWatches::Id KeyWatches::add(What what, Told told) {
  const auto id = ++last_;
  watches_.emplace(id, Watch{.what = std::move(what), .told = std::move(told)});
  if (connection_->is_up()) {
    create(id);
  }
  return id;
}

void KeyWatches::remove(Id id) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) {
    return;
  }
  // One that is not created yet is cancelled when it is.
  if (it->second.number >= 0) {
    cancel(it->second.number);
  }
  watches_.erase(it);
}

std::int64_t KeyWatches::reached(Id id) const {
  const auto it = watches_.find(id);
  return it == watches_.end() ? 0 : it->second.what.from - 1;
}

void KeyWatches::clear() {
  watches_.clear();
  down();
}

void KeyWatches::up() {
  std::vector<Id> ids;
  for (const auto& [id, watch] : watches_) {
    ids.push_back(id);
  }
  for (const auto id : ids) {
    create(id);
  }
}

void KeyWatches::down() {
  if (const auto stream = std::exchange(stream_, nullptr)) {
    stream->cancel();
  }
  asked_.clear();
  by_number_.clear();
  for (auto& [id, watch] : watches_) {
    watch.number = -1;
  }
}

void KeyWatches::create(Id id) {
  if (!stream_) {
    stream_ = std::make_shared<Stream>(self_);
    connection_->begin("/etcdserverpb.Watch/Watch", stream_);
  }
  if (!stream_) {
    return;  // It could not even begin.
  }
  const auto& what = watches_.at(id).what;
  pb::WatchRequest request;
  auto& create = *request.mutable_create();
  create.set_key(what.key);
  create.set_range_end(what.end);
  create.set_start_revision(what.from);
  if (what.of == Of::deletes) {
    create.add_filters(pb::WatchCreate::NOPUT);
  }
  asked_.push_back(id);
  stream_->send(request);
}

void KeyWatches::cancel(std::int64_t number) {
  by_number_.erase(number);
  if (stream_) {
    pb::WatchRequest request;
    request.mutable_cancel()->set_watch_id(number);
    stream_->send(request);
  }
}

void KeyWatches::received(const pb::WatchResponse& response) {
  if (response.created()) {
    created(response);
    return;
  }
  const auto it = by_number_.find(response.watch_id());
  if (it == by_number_.end()) {
    return;  // Of one that was cancelled meanwhile.
  }
  response.canceled() ? canceled(it->second, response) : happened(it->second, response);
}

void KeyWatches::created(const pb::WatchResponse& response) {
  if (asked_.empty()) {
    connection_->obey({.next = Next::elsewhere, .error = nonsense(connection_->server())});
    return;
  }
  const auto id = asked_.front();
  asked_.pop_front();
  const auto it = watches_.find(id);
  if (response.canceled()) {
    if (it != watches_.end()) {
      canceled(id, response);
    }
  } else if (it == watches_.end()) {
    cancel(response.watch_id());
  } else {
    it->second.number = response.watch_id();
    by_number_.emplace(response.watch_id(), id);
  }
}

void KeyWatches::canceled(Id id, const pb::WatchResponse& response) {
  const auto it = watches_.find(id);
  auto told = std::move(it->second.told);
  by_number_.erase(it->second.number);
  watches_.erase(it);
  ++told_;
  if (response.compact_revision() > 0 || response.cancel_reason().empty()) {
    told(Seen::forgotten);
    return;
  }
  const auto verdict = judge(response.cancel_reason(), connection_->server());
  if (verdict.next == Next::give_up) {
    told(std::unexpected(verdict.error));
    return;
  }
  connection_->obey(verdict);
  told(Seen::forgotten);
}

void KeyWatches::happened(Id id, const pb::WatchResponse& response) {
  for (const auto& event : response.events()) {
    const auto it = watches_.find(id);
    if (it == watches_.end()) {
      return;  // Whoever was told of one had enough.
    }
    auto& watch = it->second;
    watch.what.from = std::max(watch.what.from, event.kv().mod_revision() + 1);
    ++told_;
    // It may remove itself, and is not to be gone meanwhile.
    auto told = std::move(watch.told);
    told(event.type() == pb::Event::DELETE ? Seen::gone : Seen::changed);
    if (const auto still = watches_.find(id); still != watches_.end()) {
      still->second.told = std::move(told);
    }
  }
}

void KeyWatches::ended(const h2::Status& status) {
  stream_.reset();
  down();
  connection_->obey(judge_stream(status, connection_->server()));
}

}  // namespace tenure::backends::etcd
