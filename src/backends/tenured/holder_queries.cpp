#include "backends/tenured/holder_queries.hpp"

#include <chrono>
#include <utility>

#include "backends/tenured/proto_types.hpp"

namespace tenure::backends::tenured {
namespace {

/// Delay before unanswered queries are sent again on the same connection.
constexpr std::chrono::milliseconds retry_after{50};

}  // namespace

void HolderQueries::add(std::string name, Done done) {
  if (pending_.size() >= pending_max) {
    done(fail(Errc::resource_exhausted, "too many holder queries are pending"));
    return;
  }
  const auto id = ++last_id_;
  const auto& query = pending_.emplace(id, Query{std::move(name), std::move(done)}).first->second;
  if (channel_) {
    send(id, query.name);
  }
}

void HolderQueries::connected(const std::shared_ptr<grpc::Channel>& channel) {
  channel_ = channel;
  send_all();
}

void HolderQueries::disconnected() {
  channel_.reset();
  retry_timer_.cancel();
  is_retry_due_ = false;
}

void HolderQueries::send_all() {
  // A copy, because a reply that arrives at once changes `pending_`.
  std::vector<std::pair<Id, std::string>> requests;
  requests.reserve(pending_.size());
  for (const auto& [id, query] : pending_) {
    requests.emplace_back(id, query.name);
  }
  for (const auto& [id, name] : requests) {
    send(id, name);
  }
}

void HolderQueries::end(const Error& why) {
  disconnected();
  for (auto& [id, query] : std::exchange(pending_, {})) {
    query.done(std::unexpected(why));
  }
}

void HolderQueries::send(Id id, const std::string& name) {
  v1::ListRequest request;
  request.set_prefix(name);
  request.set_limit(2);  // A lock and a space can have the same name.
  grpc::UnaryClientCall<v1::ListResponse>::start(
      *channel_, "/tenure.v1.Admin/List", request,
      [this, alive = std::weak_ptr(life_), id, channel = channel_.get()](
          const grpc::Status& status, const v1::ListResponse& answer) {
        // A reply of an older connection is out of date.
        if (!alive.expired() && channel_.get() == channel) {
          completed(id, status, answer);
        }
      });
}

void HolderQueries::retry_later() {
  if (std::exchange(is_retry_due_, true)) {
    return;
  }
  retry_timer_.expires_after(retry_after);
  retry_timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled && std::exchange(is_retry_due_, false) && channel_) {
      send_all();
    }
  });
}

void HolderQueries::completed(Id id, const grpc::Status& status, const v1::ListResponse& answer) {
  const auto it = pending_.find(id);
  if (it == pending_.end()) {
    return;
  }
  const auto error = error_from(status, channel_->authority());
  if (!status.ok() && error == Errc::unavailable) {
    // The server lost the leadership, so a new connection follows, or its leadership is not
    // confirmed.
    retry_later();
    return;
  }
  auto query = std::move(it->second);
  pending_.erase(it);
  if (!status.ok()) {
    query.done(std::unexpected(error));
    return;
  }
  std::vector<Holder> found;
  // The request lists a prefix, so longer names may come back, too.
  for (const auto& lock : answer.locks()) {
    for (const auto& holder :
         lock.name() == query.name ? lock.holders() : decltype(lock.holders()){}) {
      found.push_back(holder_from(holder));
    }
  }
  query.done(std::move(found));
}

}  // namespace tenure::backends::tenured
