#include "backends/tenured/session_client.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <type_traits>

#include "backends/tenured/proto_types.hpp"

namespace tenure::backends::tenured {
namespace {

/// Upper bound for a request message. The server accepts 64 KiB by default; the rest is headroom.
constexpr std::size_t message_bytes = 48 * 1024;

Error unavailable(const std::string& why) {
  return {.code = Errc::unavailable, .detail = why};
}

/// Key of the request that an acquire makes or an abandon ends.
template <class Message>
RequestKey key_of(const Message& message) {
  return {.lease = LeaseId{message.lease_id()}, .request = RequestId{message.request_id()}};
}

}  // namespace

SessionClient::SessionClient(boost::asio::io_context& loop, Servers servers, std::string client)
    : loop_(loop),
      client_(std::move(client)),
      health_check_timeout_(servers.connect_timeout),
      health_check_timer_(loop),
      liveness_timer_(loop),
      shutdown_timer_(loop),
      watches_(loop),
      queries_(loop),
      server_count_(servers.endpoints.size()),
      first_attempts_left_(server_count_),
      connect_timer_(loop) {
  connector_ = std::make_shared<ChannelConnector>(
      loop, std::move(servers),
      ChannelConnector::Callbacks{
          .connected = [this](const auto& channel) { begin_health_check(channel); },
          .failed =
              [this](const Error& why) {
                rejection_.reset();
                connect_failed(why);
              }});
}

void SessionClient::set_listener(Listener& listener) {
  listener_ = &listener;
  if (stream_) {
    listener_->connection_changed(true, {});
  }
}

// Resends pending calls before anything else, so that their order at the server is the order of the
// requests.
void SessionClient::begin_session(const std::shared_ptr<grpc::Channel>& channel) {
  health_check_timer_.cancel();
  rejection_.reset();
  // A callback may release the last reference of the owner.
  stream_ = std::make_shared<MessageStream<v1::SessionResponse>>(
      [this](const v1::SessionResponse& response) {
        const auto self = shared_from_this();
        received(response);
      },
      [this](const grpc::Status& status) {
        const auto self = shared_from_this();
        stream_ended(status);
      });
  channel->begin("/tenure.v1.LockService/Session", stream_);
  if (!stream_) {
    return;  // The stream failed at once; disconnected() has handled it.
  }
  v1::SessionRequest hello;
  hello.mutable_hello()->set_client(client_);
  hello.mutable_hello()->set_keep_waits(true);
  stream_->send(hello);
  // resubscribe_leases() creates new ones.
  absl::erase_if(pending_, [](const auto& entry) {
    return entry.second->operation.has_renew_leases() &&
           std::holds_alternative<std::monostate>(entry.second->done);
  });
  std::vector<Id> ids;
  for (auto& [id, call] : pending_) {
    call->is_queued = false;
    ids.push_back(id);
  }
  queued_count_ = 0;
  send_all(ids);
  resubscribe_leases();
  watches_.connected(channel);
  queries_.connected(channel);
  if (on_first_connection_) {
    connect_timer_.cancel();
    std::exchange(on_first_connection_, nullptr)({});
  }
  if (listener_ != nullptr) {
    listener_->connection_changed(true, {});
  }
}

/// A server reports losses only on the stream that used the lease last, so each new stream renews
/// all leases.
void SessionClient::resubscribe_leases() {
  std::vector<Id> ids;
  std::vector<std::uint64_t> leases(leases_.begin(), leases_.end());
  constexpr std::size_t leases_per_call = 4000;
  for (std::size_t first = 0; first < leases.size(); first += leases_per_call) {
    auto call = std::make_unique<PendingCall>();
    auto& some = *call->operation.mutable_renew_leases()->mutable_ids();
    const auto end = std::min(leases.size(), first + leases_per_call);
    some.Add(leases.begin() + static_cast<std::ptrdiff_t>(first),
             leases.begin() + static_cast<std::ptrdiff_t>(end));
    pending_.emplace(++last_id_, std::move(call));
    ids.push_back(last_id_);
  }
  send_all(ids);
}

// Calls.

void SessionClient::submit(PendingCallPtr call) {
  std::vector<PendingCallPtr> one;
  one.push_back(std::move(call));
  submit(std::move(one));
}

namespace {

/// Lease that the client no longer tracks after this call; 0: none.
std::uint64_t untracked_by(const PendingCall& call) {
  if (call.operation.has_revoke_lease()) {
    return call.operation.revoke_lease().id();
  }
  const bool is_last = call.operation.has_set_ttl() && call.tracking == LeaseTracking::ended;
  return is_last ? call.operation.set_ttl().lease_id() : 0;
}

}  // namespace

// Leases and holds are tracked when a call is sent, not when it completes: a lease may exist at the
// server although its reply was lost.
void SessionClient::submit(std::vector<PendingCallPtr> calls) {
  std::vector<Id> ids;
  ids.reserve(calls.size());
  for (auto& call : calls) {
    if (const auto lease = untracked_by(*call); lease != 0) {
      // Now and not with the outcome, also if the call is rejected: a new stream must not renew it.
      untrack(lease);
    }
    if (stopped_ || rejection_) {
      fail_with(*call, stopped_ ? unavailable("the client is closed") : *rejection_);
      continue;
    }
    const auto id = ++last_id_;
    auto& operation = call->operation;
    operation.set_id(id);
    if (operation.has_acquire()) {
      const auto& acquire = operation.acquire();
      waits_.insert_or_assign(key_of(acquire), id);
    } else if (operation.has_grant_lease()) {
      const auto& grant = operation.grant_lease();
      leases_.insert(grant.id());
      observe_ttl(std::chrono::milliseconds(grant.ttl_ms()));
    } else if (operation.has_set_ttl()) {
      observe_ttl(std::chrono::milliseconds(operation.set_ttl().ttl_ms()));
    } else if (operation.has_release()) {
      holds_.released(operation.release());
    }
    pending_.emplace(id, std::move(call));
    ids.push_back(id);
  }
  if (stream_) {
    send_all(ids);
  }
}

void SessionClient::untrack(std::uint64_t lease) {
  leases_.erase(lease);
  holds_.lease_ended(lease);
}

void SessionClient::send_all(const std::vector<Id>& ids) {
  v1::SessionRequest batch;
  std::size_t bytes = 0;
  // The operations stay owned by the calls, for a retry; the message only borrows them.
  const auto send = [&] {
    if (batch.operations_size() > 0) {
      stream_->send(batch);
      // Takes the operations back before the message is destroyed, which would free them.
      batch.mutable_operations()->UnsafeArenaExtractSubrange(0, batch.operations_size(), nullptr);
      bytes = 0;
    }
  };
  for (const auto id : ids) {
    auto& operation = pending_.at(id)->operation;
    operation.set_id(id);
    // 8 bytes for the tag and the length of the operation in the message.
    const auto size = operation.ByteSizeLong() + 8;
    if (bytes + size > message_bytes) {
      send();
    }
    batch.mutable_operations()->UnsafeArenaAddAllocated(&operation);
    bytes += size;
  }
  send();
}

void SessionClient::abandon(LeaseId lease, RequestId request) {
  const RequestKey key{.lease = lease, .request = request};
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;
  }
  auto call = std::make_unique<PendingCall>();
  call->operation.mutable_abandon()->set_lease_id(lease.get());
  call->operation.mutable_abandon()->set_request_id(request.get());
  if (!stream_) {
    cancel_wait(*call);
  }
  submit(std::move(call));
}

// Without a connection it is unknown whether the wait was granted. The caller gets `cancelled` now;
// the abandon is sent later and releases a grant.
void SessionClient::cancel_wait(PendingCall& abandon) {
  const auto it = waits_.find(key_of(abandon.operation.abandon()));
  if (it != waits_.end()) {
    abandon.is_detached = true;
    fail_with(*take(it->second), {.code = Errc::cancelled});
  }
}

void SessionClient::cancel_abandoned_waits() {
  std::vector<Id> abandons;
  for (const auto& [id, call] : pending_) {
    if (call->operation.has_abandon()) {
      abandons.push_back(id);
    }
  }
  for (const auto id : abandons) {
    if (const auto it = pending_.find(id); it != pending_.end()) {
      cancel_wait(*it->second);
    }
  }
}

PendingCallPtr SessionClient::take(Id id) {
  const auto it = pending_.find(id);
  auto call = std::move(it->second);
  pending_.erase(it);
  queued_count_ -= call->is_queued ? 1 : 0;
  if (call->operation.has_acquire()) {
    // A later abandon of this request finds nothing, and the grant stands.
    const auto& acquire = call->operation.acquire();
    waits_.erase(key_of(acquire));
  }
  return call;
}

// An unknown outcome can only be resolved by a member that leads, so the connection is replaced.
void SessionClient::received(const v1::SessionResponse& response) {
  for (const auto& outcome : response.outcomes()) {
    handle_outcome(outcome);
  }
  if (!has_unknown_outcome_) {
    connector_->mark_healthy();
  }
  for (const auto lease : response.lost_leases()) {
    untrack(lease);
    if (listener_ != nullptr) {
      listener_->lease_lost(LeaseId{lease});
    }
  }
  for (const auto& taken : response.taken()) {
    holds_.force_released(taken.lease_id(), taken.fencing_token());
    if (listener_ != nullptr) {
      listener_->hold_force_released(LeaseId{taken.lease_id()}, RequestId{taken.request_id()});
    }
  }
  if (std::exchange(has_unknown_outcome_, false)) {
    disconnected(error_from({grpc::StatusCode::unavailable, "the outcome of a request is unknown"},
                            channel_->authority()));
  }
  end_if_idle();
}

void SessionClient::handle_outcome(const v1::Outcome& outcome) {
  const auto it = pending_.find(outcome.id());
  if (it == pending_.end()) {
    return;
  }
  if (outcome.has_queued()) {
    it->second->queue_position = static_cast<std::size_t>(outcome.queued().position());
    queued_count_ += std::exchange(it->second->is_queued, true) ? 0 : 1;
    return;
  }
  if (outcome.has_refused() && outcome.refused().code() == v1::CODE_UNAVAILABLE) {
    // The outcome is unknown: the call stays pending and is sent again on the next connection.
    has_unknown_outcome_ = true;
    return;
  }
  const auto call = take(outcome.id());
  if (call->operation.has_abandon()) {
    complete_abandon(*call, outcome);
    return;
  }
  complete(*call, outcome);
}

void SessionClient::complete_abandon(const PendingCall& abandon, const v1::Outcome& outcome) {
  const auto key = key_of(abandon.operation.abandon());
  if (const auto it = waits_.find(key); it != waits_.end()) {
    complete(*take(it->second), outcome);
    return;
  }
  // Otherwise the grant reached the caller just before, and the caller releases it.
  if (abandon.is_detached && outcome.has_granted()) {
    auto call = std::make_unique<PendingCall>();
    auto& release = *call->operation.mutable_release();
    release.set_lease_id(key.lease.get());
    release.set_fencing_token(outcome.granted().fencing_token());
    submit(std::move(call));
  }
}

// A lease that is already gone counts as revoked.
void SessionClient::complete(PendingCall& call, const v1::Outcome& outcome) {
  if (outcome.has_refused()) {
    auto error = error_from(outcome.refused());
    if (error == Errc::lease_lost && call.operation.has_revoke_lease()) {
      std::get<Backend::Done<void>>(call.done)({});
      return;
    }
    fail_with(call, error);
    return;
  }
  if (auto* granted = std::get_if<Backend::Done<Granted>>(&call.done)) {
    holds_.granted(call.operation.acquire(), outcome.granted());
    (*granted)(Granted{.token = FencingToken{outcome.granted().fencing_token()},
                       .count = outcome.granted().count(),
                       .queue_position = call.queue_position});
    return;
  }
  if (outcome.has_renewed()) {
    complete_renewal(call, outcome.renewed());
    return;
  }
  if (auto* done = std::get_if<Backend::Done<void>>(&call.done)) {
    (*done)({});
  }
}

void SessionClient::complete_renewal(PendingCall& call, const v1::Renewed& renewed) {
  if (renewed.unconfirmed_size() > 0) {
    confirm_holds(renewed);
    // Neither lost nor renewed: the next renewal decides.
    fail_with(call, unavailable("the cluster was restored; the lease is being confirmed"));
    return;
  }
  const auto& operation = call.operation;
  const bool is_alive = renewed.ttl_ms_size() > 0 && renewed.ttl_ms(0) > 0;
  if (operation.has_set_ttl() || operation.has_confirm_holds()) {
    if (!is_alive) {
      lease_lost(operation.has_set_ttl() ? operation.set_ttl().lease_id()
                                         : operation.confirm_holds().lease_id());
    }
    if (auto* done = std::get_if<Backend::Done<void>>(&call.done)) {
      (*done)(is_alive ? Result<void>() : fail(Errc::lease_lost, "the lease has ended"));
    }
    return;
  }
  Renewed answer;
  const auto& ids = operation.renew_leases().ids();
  for (int n = 0; n < renewed.ttl_ms_size(); ++n) {
    answer.push_back(renewed.ttl_ms(n) > 0);
    if (!answer.back() && n < ids.size()) {
      lease_lost(ids[n]);
    }
  }
  if (auto* done = std::get_if<Backend::Done<Renewed>>(&call.done)) {
    (*done)(std::move(answer));
  }
}

void SessionClient::confirm_holds(const v1::Renewed& renewed) {
  for (const auto lease : renewed.unconfirmed()) {
    // A lease that is no longer tracked has no known holds, and a confirmation without holds would
    // end those that it has.
    if (!leases_.contains(lease)) {
      continue;
    }
    auto call = std::make_unique<PendingCall>();
    auto& confirmation = *call->operation.mutable_confirm_holds();
    confirmation.set_lease_id(lease);
    for (const auto token : holds_.tokens(lease)) {
      confirmation.add_fencing_tokens(token);
    }
    submit(std::move(call));
  }
}

void SessionClient::lease_lost(std::uint64_t lease) {
  holds_.lease_ended(lease);
  if (leases_.erase(lease) > 0 && listener_ != nullptr) {
    listener_->lease_lost(LeaseId{lease});
  }
}

void SessionClient::fail_with(PendingCall& call, const Error& error) {
  std::visit(
      [&](auto& done) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(done)>, std::monostate>) {
          done(std::unexpected(error));
        }
      },
      call.done);
}

// Watches.

void SessionClient::watch(WatchId id, WatchRequest request, Backend::Sink sink,
                          std::function<void()> begun) {
  watches_.add(id, std::move(request), std::move(sink), std::move(begun));
}

// Shutdown.

// Waits are failed at once, because they may last for ever. Releases and revocations get the
// timeout to reach the server.
void SessionClient::stop(std::chrono::milliseconds timeout, std::function<void()> done) {
  stopped_ = std::move(done);
  fail_waits();
  // With several servers, another one may lead soon.
  const bool may_recover = stream_ || !connector_->has_single_endpoint();
  shutdown_timer_.expires_after(may_recover ? timeout : std::chrono::milliseconds(0));
  shutdown_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) {
      self->end();
    }
  });
  end_if_idle();
}

void SessionClient::cancel() {
  fail_waits();
  end();
}

void SessionClient::fail_waits() {
  std::vector<Id> waits;
  for (const auto& [key, id] : waits_) {
    waits.push_back(id);
  }
  for (const auto id : waits) {
    fail_with(*take(id), client_closed());
  }
  watches_.end();
  queries_.end(client_closed());
}

void SessionClient::end_if_idle() {
  if (stopped_ && pending_.empty()) {
    end();
  }
}

void SessionClient::end() {
  const auto done = std::exchange(stopped_, [] {});
  listener_ = nullptr;
  connector_->stop();
  health_check_timer_.cancel();
  liveness_timer_.cancel();
  connect_timer_.cancel();
  shutdown_timer_.cancel();
  if (const auto stream = std::exchange(stream_, nullptr)) {
    stream->detach();
  }
  if (const auto channel = std::exchange(channel_, nullptr)) {
    channel->close();
  }
  for (auto& [id, call] : std::exchange(pending_, {})) {
    fail_with(*call, client_closed());
  }
  done();
}

}  // namespace tenure::backends::tenured
