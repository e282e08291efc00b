#include "backends/etcd/leases.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backends/etcd/keys.hpp"

namespace tenure::backends::etcd {
namespace {

using std::chrono::milliseconds;

std::int64_t seconds_of(milliseconds ttl) {
  return std::chrono::ceil<std::chrono::seconds>(ttl).count();
}

Error ended() {
  return {.code = Errc::lease_lost, .detail = "the lease has ended; request a new one"};
}

}  // namespace

Leases::Leases(std::shared_ptr<Connection> connection, std::function<void(LeaseId)> lost)
    : connection_(std::move(connection)), on_lost_(std::move(lost)) {}

// Granting.

void Leases::grant(LeaseId id, milliseconds ttl, Backend::Done<void> done) {
  shortest_ttl_ = leases_.empty() ? ttl : std::min(shortest_ttl_, ttl);
  leases_.insert_or_assign(id, Lease{.ttl = ttl, .done = std::move(done)});
  enqueue_request(id);
}

void Leases::enqueue_request(LeaseId id) {
  requests_.push_back(id);
  send_next();
}

void Leases::send_next() {
  while (connection_->is_up() && in_flight_ < requests_max && !requests_.empty()) {
    const auto id = requests_.front();
    requests_.pop_front();
    if (revokes_.contains(id)) {
      send_revoke(id);
    } else if (const auto it = leases_.find(id); it != leases_.end() && !it->second.is_granted) {
      send_grant(id);
    }
  }
}

void Leases::request_done() {
  --in_flight_;
  send_next();
}

void Leases::send_grant(LeaseId id) {
  ++in_flight_;
  pb::LeaseGrantRequest request;
  request.set_id(number_of(id));
  request.set_ttl(seconds_of(leases_.at(id).ttl));
  connection_->call<pb::LeaseGrantResponse>(
      "/etcdserverpb.Lease/LeaseGrant", request,
      [this, id](const grpc::Status& status, const pb::LeaseGrantResponse& response) {
        grant_done(id, status, response.ttl());
        request_done();
      });
}

void Leases::grant_done(LeaseId id, const grpc::Status& status, std::int64_t seconds) {
  const auto it = leases_.find(id);
  if (it == leases_.end() || !it->second.done) {
    return;
  }
  auto& lease = it->second;
  if (status.ok()) {
    const bool is_enough = seconds >= seconds_of(lease.ttl);
    complete_grant(
        id, is_enough ? Result<void>() : std::unexpected(malformed_reply(connection_->server())));
    return;
  }
  // Lease ids are random, so an existing lease is ours: the reply to an earlier grant was lost.
  constexpr std::string_view exists = "lease already exists";
  if (lease.is_retry && status.message.find(exists) != std::string::npos) {
    complete_grant(id, {});
    return;
  }
  const auto failure = classify(status, connection_->server());
  if (failure.recovery == Recovery::none) {
    complete_grant(id, std::unexpected(failure.error));
    return;
  }
  lease.is_retry = true;
  requests_.push_front(id);
  connection_->recover(failure);
}

void Leases::complete_grant(LeaseId id, const Result<void>& result) {
  const auto it = leases_.find(id);
  auto done = std::exchange(it->second.done, nullptr);
  auto waiting = std::exchange(it->second.waiting, {});
  if (result) {
    it->second.is_granted = true;
  } else {
    leases_.erase(it);
  }
  if (done) {
    done(result);
  }
  for (auto& one : waiting) {
    one(result);
  }
}

void Leases::when_granted(LeaseId id, OnGranted on_granted) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    on_granted(std::unexpected(ended()));
  } else if (it->second.is_granted) {
    on_granted({});
  } else {
    it->second.waiting.push_back(std::move(on_granted));
  }
}

// Keeping.

void Leases::renew(std::vector<LeaseId> ids, Backend::Done<Renewed> done) {
  if (!connection_->is_up()) {
    done(fail(Errc::unavailable, "no server responds at the moment"));
    return;
  }
  const auto renewal = std::make_shared<FanIn<Renewed>>(std::move(done), Renewed(ids.size(), true));
  for (std::size_t index = 0; index < ids.size(); ++index) {
    renewal->add();
    RenewalItem item{.renewal = renewal, .index = index};
    when_granted(ids[index], [this, id = ids[index],
                              item = std::move(item)](const Result<void>& result) mutable {
      if (result) {
        keep_alive(id, std::move(item));
        return;
      }
      mark_lost(*item.renewal, item.index);
      item.renewal->part_done();
    });
  }
  renewal->part_done();
}

void Leases::check(LeaseId id) {
  renew({id}, [](const Result<Renewed>&) {});
}

void Leases::keep_alive(LeaseId id, RenewalItem item) {
  if (connection_->is_up() && !stream_) {
    stream_ = std::make_shared<MessageStream<pb::LeaseKeepAliveResponse>>(
        [this](const pb::LeaseKeepAliveResponse& response) {
          keep_alive_done(response.id(), response.ttl());
        },
        [this](const grpc::Status& status) { stream_ended(status); });
    connection_->begin("/etcdserverpb.Lease/LeaseKeepAlive", stream_);
  }
  if (!stream_) {
    item.renewal->fail({.code = Errc::unavailable, .detail = "no server responds"});
    item.renewal->part_done();
    return;
  }
  const auto number = number_of(id);
  auto& due = awaiting_reply_[number];
  due.id = id;
  due.items.push_back(std::move(item));
  pb::LeaseKeepAliveRequest request;
  request.set_id(number);
  stream_->send(request);
}

// etcd answers keep-alives of one lease in order, so the oldest one is completed. TTL 0 means that
// the lease has ended.
void Leases::keep_alive_done(std::int64_t number, std::int64_t seconds) {
  const auto it = awaiting_reply_.find(number);
  if (it == awaiting_reply_.end()) {
    return;
  }
  const auto id = it->second.id;
  const auto item = std::move(it->second.items.front());
  it->second.items.pop_front();
  if (it->second.items.empty()) {
    awaiting_reply_.erase(it);
  }
  const bool is_alive = seconds > 0;
  if (!is_alive) {
    mark_lost(*item.renewal, item.index);
  }
  const bool is_newly_lost = !is_alive && leases_.contains(id);
  item.renewal->part_done();
  if (is_newly_lost) {
    on_lost_(id);
  }
}

void Leases::stream_ended(const grpc::Status& status) {
  stream_.reset();
  disconnected();
  connection_->recover(classify_stream(status, connection_->server()));
}

// Ending.

// A revocation must not overtake the grant, because etcd would create the lease after it.
void Leases::revoke(LeaseId id, Backend::Done<void> done) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    done({});
    return;
  }
  if (it->second.is_granted) {
    leases_.erase(it);
    enqueue_revoke(id, std::move(done));
    return;
  }
  // The grant is in flight and must not arrive after the revocation.
  it->second.waiting.push_back(
      [this, id, done = std::move(done)](const Result<void>& granted) mutable {
        if (!granted) {
          done({});
          return;
        }
        leases_.erase(id);
        enqueue_revoke(id, std::move(done));
      });
}

void Leases::enqueue_revoke(LeaseId id, Backend::Done<void> done) {
  revokes_.insert_or_assign(id, std::move(done));
  enqueue_request(id);
}

void Leases::send_revoke(LeaseId id) {
  ++in_flight_;
  pb::LeaseRevokeRequest request;
  request.set_id(number_of(id));
  connection_->call<pb::LeaseRevokeResponse>(
      "/etcdserverpb.Lease/LeaseRevoke", request,
      [this, id](const grpc::Status& status, const pb::LeaseRevokeResponse&) {
        revoke_done(id, status);
        request_done();
      });
}

void Leases::revoke_done(LeaseId id, const grpc::Status& status) {
  const auto it = revokes_.find(id);
  if (it == revokes_.end()) {
    return;
  }
  const auto failure =
      status.ok() ? Failure{.recovery = Recovery::none} : classify(status, connection_->server());
  if (failure.recovery != Recovery::none) {
    requests_.push_front(id);
    connection_->recover(failure);
    return;
  }
  auto done = std::move(it->second);
  revokes_.erase(it);
  // A missing lease has ended, which is the desired state.
  const bool is_over = status.ok() || failure.error == Errc::lease_lost;
  done(is_over ? Result<void>() : std::unexpected(failure.error));
}

void Leases::forget(LeaseId id) {
  if (const auto it = leases_.find(id); it != leases_.end() && !it->second.done) {
    leases_.erase(it);
  }
}

std::vector<LeaseId> Leases::all() const {
  std::vector<LeaseId> ids;
  for (const auto& [id, lease] : leases_) {
    ids.push_back(id);
  }
  return ids;
}

// The connection.

void Leases::connected() {
  send_next();
}

// The outcome of these renewals is unknown; the caller renews again before the deadline.
void Leases::disconnected() {
  if (const auto stream = std::exchange(stream_, nullptr)) {
    stream->detach();
  }
  for (auto& [number, due] : std::exchange(awaiting_reply_, {})) {
    for (auto& item : due.items) {
      item.renewal->fail({.code = Errc::unavailable, .detail = "connection lost before the reply"});
      item.renewal->part_done();
    }
  }
}

void Leases::fail_all(const Error& why) {
  disconnected();
  std::vector<LeaseId> open;
  for (const auto& [id, lease] : leases_) {
    if (!lease.is_granted) {
      open.push_back(id);
    }
  }
  for (const auto id : open) {
    complete_grant(id, std::unexpected(why));
  }
  for (auto& [id, done] : std::exchange(revokes_, {})) {
    done(std::unexpected(why));
  }
  requests_.clear();
}

}  // namespace tenure::backends::etcd
