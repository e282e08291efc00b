#include "backends/etcd/key_watches.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace tenure::backends::etcd {
namespace {

/// So many watches of keys that are gone are left to etcd, which has no work with them: to cancel
/// one is a request, and so is to begin the stream anew, which ends all of them.
constexpr std::size_t spent_max = 64;

}  // namespace

/// The stream on one connection.
class KeyWatches::Stream final : public grpc::Exchange {
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
  void ended(const grpc::Status& status) override {
    if (auto* const watches = owner()) {
      watches->ended(status);
    }
  }

  std::weak_ptr<KeyWatches*> owner_;
};

KeyWatches::Id KeyWatches::add(What what, Told told) {
  const auto id = ++last_;
  watches_.emplace(id, Watch{.what = std::move(what), .told = std::move(told)});
  // Not where it would make more of others again than it saves.
  if (spent_ >= std::max(spent_max, watches_.size())) {
    begin_anew();
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
  // One that is not created yet is cancelled when it is.
  if (it->second.is_spent) {
    by_number_.erase(it->second.number);
    ++spent_;
  } else if (it->second.number >= 0) {
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

void KeyWatches::begin_anew() {
  down();
  if (connection_->is_up()) {
    up();
  }
}

void KeyWatches::down() {
  if (const auto stream = std::exchange(stream_, nullptr)) {
    stream->cancel();
  }
  asked_.clear();
  by_number_.clear();
  spent_ = 0;
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
    if (response.header().revision() >= it->second.what.from) {
      catch_up(id);
    }
  }
}

void KeyWatches::catch_up(Id id) {
  const auto& watch = watches_.at(id);
  if (!watch.what.end.empty()) {
    tell(id, Seen::changed, watch.what.from);
    return;
  }
  pb::RangeRequest request;
  request.set_key(watch.what.key);
  request.set_keys_only(true);
  // This member has said that it knows more than we did.
  request.set_serializable(true);
  connection_->ask<pb::RangeResponse>(
      "/etcdserverpb.KV/Range", request,
      [owner = std::weak_ptr(self_), id, stream = stream_, number = watch.number](
          const grpc::Status& status, const pb::RangeResponse& response) {
        const auto self = owner.lock();
        const auto it = self ? (*self)->watches_.find(id) : decltype((*self)->watches_.end()){};
        const bool is_there = self && (*self)->stream_ == stream && it != (*self)->watches_.end() &&
                              it->second.number == number;
        if (!is_there) {
          return;  // Over, or it began again on another connection.
        }
        if (status.ok()) {
          (*self)->caught_up(id, response);
        } else {
          (*self)->cancel(number);
          (*self)->end(id, judge(status, (*self)->connection_->server()));
        }
      });
}

void KeyWatches::caught_up(Id id, const pb::RangeResponse& response) {
  const auto& watch = watches_.at(id);
  const auto from = watch.what.from;
  const auto revision = response.header().revision();
  if (response.kvs_size() == 0 ||
      (watch.what.of == Of::deletes && response.kvs(0).create_revision() >= from)) {
    tell(id, Seen::gone, revision);
  } else if (watch.what.of == Of::changes && response.kvs(0).mod_revision() >= from) {
    tell(id, Seen::changed, revision);
  }
}

void KeyWatches::canceled(Id id, const pb::WatchResponse& response) {
  by_number_.erase(response.watch_id());
  const bool is_forgotten = response.compact_revision() > 0 || response.cancel_reason().empty();
  end(id, is_forgotten ? std::nullopt
                       : std::optional(judge(response.cancel_reason(), connection_->server())));
}

/// `why`: nothing, if etcd only knows no more.
void KeyWatches::end(Id id, const std::optional<Verdict>& why) {
  const auto it = watches_.find(id);
  auto told = std::move(it->second.told);
  watches_.erase(it);
  ++told_;
  if (why && why->next == Next::give_up) {
    told(std::unexpected(why->error));
    return;
  }
  if (why) {
    connection_->obey(*why);
  }
  told(Seen::forgotten);
}

void KeyWatches::happened(Id id, const pb::WatchResponse& response) {
  for (const auto& event : response.events()) {
    const auto it = watches_.find(id);
    if (it == watches_.end()) {
      return;  // Whoever was told of one had enough.
    }
    const auto revision = event.kv().mod_revision();
    if (revision >= it->second.what.from) {
      tell(id, event.type() == pb::Event::DELETE ? Seen::gone : Seen::changed, revision);
    }
  }
}

/// Of something up to this revision.
void KeyWatches::tell(Id id, Seen seen, std::int64_t revision) {
  auto& watch = watches_.at(id);
  watch.what.from = std::max(watch.what.from, revision + 1);
  watch.is_spent = seen == Seen::gone && watch.what.end.empty() && watch.number >= 0;
  ++told_;
  // It may remove itself, and is not to be gone meanwhile.
  auto told = std::move(watch.told);
  told(seen);
  if (const auto still = watches_.find(id); still != watches_.end()) {
    still->second.told = std::move(told);
  }
}

void KeyWatches::ended(const grpc::Status& status) {
  stream_.reset();
  down();
  connection_->obey(judge_stream(status, connection_->server()));
}

}  // namespace tenure::backends::etcd
