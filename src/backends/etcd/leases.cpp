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
  return {.code = Errc::lease_lost, .detail = "the lease has ended; begin anew"};
}

}  // namespace

/// The keep-alives of one connection.
class Leases::Stream final : public grpc::Exchange {
 public:
  explicit Stream(std::weak_ptr<Leases*> owner) : owner_(std::move(owner)) {}

 private:
  [[nodiscard]] Leases* owner() {
    const auto owner = owner_.lock();
    return owner && (*owner)->stream_.get() == this ? *owner : nullptr;
  }
  void received(std::string_view message) override {
    pb::LeaseKeepAliveResponse response;
    if (!response.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      cancel();
    } else if (auto* const leases = owner()) {
      leases->kept(response.id(), response.ttl());
    }
  }
  void ended(const grpc::Status& status) override {
    if (auto* const leases = owner()) {
      leases->stream_ended(status);
    }
  }

  std::weak_ptr<Leases*> owner_;
};

Leases::Leases(std::shared_ptr<Connection> connection, std::function<void(LeaseId)> lost)
    : connection_(std::move(connection)),
      self_(std::make_shared<Leases*>(this)),
      lost_(std::move(lost)) {}

// Granting.

void Leases::grant(LeaseId id, milliseconds ttl, Backend::Done<void> done) {
  shortest_ttl_ = leases_.empty() ? ttl : std::min(shortest_ttl_, ttl);
  leases_.insert_or_assign(id, Lease{.ttl = ttl, .done = std::move(done)});
  ask_soon(id);
}

void Leases::ask_soon(LeaseId id) {
  next_.push_back(id);
  ask_next();
}

void Leases::ask_next() {
  while (connection_->is_up() && asking_ < asking_max && !next_.empty()) {
    const auto id = next_.front();
    next_.pop_front();
    if (revocations_.contains(id)) {
      ask_revocation(id);
    } else if (const auto it = leases_.find(id); it != leases_.end() && !it->second.is_granted) {
      ask_grant(id);
    }
  }
}

void Leases::answered() {
  --asking_;
  ask_next();
}

void Leases::ask_grant(LeaseId id) {
  ++asking_;
  pb::LeaseGrantRequest request;
  request.set_id(number_of(id));
  request.set_ttl(seconds_of(leases_.at(id).ttl));
  connection_->ask<pb::LeaseGrantResponse>(
      "/etcdserverpb.Lease/LeaseGrant", request,
      [this, id](const grpc::Status& status, const pb::LeaseGrantResponse& response) {
        granted(id, status, response.ttl());
        answered();
      });
}

void Leases::granted(LeaseId id, const grpc::Status& status, std::int64_t seconds) {
  const auto it = leases_.find(id);
  if (it == leases_.end() || !it->second.done) {
    return;
  }
  auto& lease = it->second;
  if (status.ok()) {
    const bool is_enough = seconds >= seconds_of(lease.ttl);
    settle(id, is_enough ? Result<void>() : std::unexpected(nonsense(connection_->server())));
    return;
  }
  // Nobody else draws the same number: it was us, and the answer was lost.
  constexpr std::string_view exists = "lease already exists";
  if (lease.is_retry && status.message.find(exists) != std::string::npos) {
    settle(id, {});
    return;
  }
  const auto verdict = judge(status, connection_->server());
  if (verdict.next == Next::give_up) {
    settle(id, std::unexpected(verdict.error));
    return;
  }
  lease.is_retry = true;
  next_.push_front(id);
  connection_->obey(verdict);
}

void Leases::settle(LeaseId id, const Result<void>& result) {
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

void Leases::when_granted(LeaseId id, Ready ready) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    ready(std::unexpected(ended()));
  } else if (it->second.is_granted) {
    ready({});
  } else {
    it->second.waiting.push_back(std::move(ready));
  }
}

// Keeping.

void Leases::Renewal::one_answered() {
  if (--left > 0) {
    return;
  }
  doubt ? done(std::unexpected(*doubt)) : done(std::move(alive));
}

void Leases::renew(std::vector<LeaseId> ids, Backend::Done<Renewed> done) {
  if (!connection_->is_up()) {
    done(fail(Errc::unavailable, "no server answers at the moment"));
    return;
  }
  const auto renewal = std::make_shared<Renewal>();
  renewal->alive.assign(ids.size(), true);
  renewal->left = ids.size() + 1;
  renewal->done = std::move(done);
  for (std::size_t index = 0; index < ids.size(); ++index) {
    Turn turn{.renewal = renewal, .index = index};
    when_granted(ids[index], [this, id = ids[index],
                              turn = std::move(turn)](const Result<void>& result) mutable {
      if (result) {
        keep_alive(id, std::move(turn));
        return;
      }
      turn.renewal->alive[turn.index] = false;
      turn.renewal->one_answered();
    });
  }
  renewal->one_answered();
}

void Leases::check(LeaseId id) {
  renew({id}, [](const Result<Renewed>&) {});
}

void Leases::keep_alive(LeaseId id, Turn turn) {
  if (connection_->is_up() && !stream_) {
    stream_ = std::make_shared<Stream>(self_);
    connection_->begin("/etcdserverpb.Lease/LeaseKeepAlive", stream_);
  }
  if (!stream_) {
    turn.renewal->doubt = Error{.code = Errc::unavailable, .detail = "no server answers"};
    turn.renewal->one_answered();
    return;
  }
  const auto number = number_of(id);
  auto& due = due_[number];
  due.id = id;
  due.turns.push_back(std::move(turn));
  pb::LeaseKeepAliveRequest request;
  request.set_id(number);
  stream_->send(request);
}

void Leases::kept(std::int64_t number, std::int64_t seconds) {
  const auto it = due_.find(number);
  if (it == due_.end()) {
    return;
  }
  const auto id = it->second.id;
  const auto turn = std::move(it->second.turns.front());
  it->second.turns.pop_front();
  if (it->second.turns.empty()) {
    due_.erase(it);
  }
  const bool is_alive = seconds > 0;
  turn.renewal->alive[turn.index] = is_alive;
  const bool is_news = !is_alive && leases_.contains(id);
  turn.renewal->one_answered();
  if (is_news) {
    lost_(id);
  }
}

void Leases::stream_ended(const grpc::Status& status) {
  stream_.reset();
  down();
  connection_->obey(judge_stream(status, connection_->server()));
}

// Ending.

void Leases::revoke(LeaseId id, Backend::Done<void> done) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    done({});
    return;
  }
  if (it->second.is_granted) {
    leases_.erase(it);
    begin_revocation(id, std::move(done));
    return;
  }
  // The grant is on its way, and must not come after its end.
  it->second.waiting.push_back(
      [this, id, done = std::move(done)](const Result<void>& granted) mutable {
        if (!granted) {
          done({});
          return;
        }
        leases_.erase(id);
        begin_revocation(id, std::move(done));
      });
}

void Leases::begin_revocation(LeaseId id, Backend::Done<void> done) {
  revocations_.insert_or_assign(id, Revocation{.done = std::move(done)});
  ask_soon(id);
}

void Leases::ask_revocation(LeaseId id) {
  ++asking_;
  pb::LeaseRevokeRequest request;
  request.set_id(number_of(id));
  connection_->ask<pb::LeaseRevokeResponse>(
      "/etcdserverpb.Lease/LeaseRevoke", request,
      [this, id](const grpc::Status& status, const pb::LeaseRevokeResponse&) {
        revoked(id, status);
        answered();
      });
}

void Leases::revoked(LeaseId id, const grpc::Status& status) {
  const auto it = revocations_.find(id);
  if (it == revocations_.end()) {
    return;
  }
  const auto verdict =
      status.ok() ? Verdict{.next = Next::give_up} : judge(status, connection_->server());
  if (verdict.next != Next::give_up) {
    next_.push_front(id);
    connection_->obey(verdict);
    return;
  }
  auto done = std::move(it->second.done);
  revocations_.erase(it);
  // One that is not there has ended, which is what was wanted.
  const bool is_over = status.ok() || verdict.error == Errc::lease_lost;
  done(is_over ? Result<void>() : std::unexpected(verdict.error));
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

void Leases::up() {
  ask_next();
}

void Leases::down() {
  if (const auto stream = std::exchange(stream_, nullptr)) {
    stream->cancel();
  }
  for (auto& [number, due] : std::exchange(due_, {})) {
    for (auto& turn : due.turns) {
      turn.renewal->doubt =
          Error{.code = Errc::unavailable, .detail = "the connection broke before the answer"};
      turn.renewal->one_answered();
    }
  }
}

void Leases::fail_all(const Error& why) {
  down();
  std::vector<LeaseId> open;
  for (const auto& [id, lease] : leases_) {
    if (!lease.is_granted) {
      open.push_back(id);
    }
  }
  for (const auto id : open) {
    settle(id, std::unexpected(why));
  }
  for (auto& [id, revocation] : std::exchange(revocations_, {})) {
    revocation.done(std::unexpected(why));
  }
  next_.clear();
}

}  // namespace tenure::backends::etcd
