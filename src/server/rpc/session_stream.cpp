#include "server/rpc/session_stream.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include "wire/answers.hpp"
#include "wire/errors.hpp"
#include "wire/requests.hpp"

namespace tenure::server {
namespace {

/// Keeps a message well below the 4 MiB default limit of gRPC clients.
/// An outcome has tens of bytes, except a deadlock with its cycle.
constexpr int outcomes_per_message_max = 4096;
/// 10^12 ms, over 30 years; a longer timeout means no timeout.
constexpr std::uint64_t wait_ms_max = 1'000'000'000'000;

std::uint64_t timeout_of(const v1::Acquire& request) {
  return request.has_timeout_ms() ? std::min(request.timeout_ms(), wait_ms_max) : wait_ms_max;
}

}  // namespace

// Reading
// ------------------------------------------------------------------------------------------

void SessionStream::on_request(v1::SessionRequest& request) {
  if (finish_if_unauthenticated() || !handle_hello(request)) {
    return;
  }
  // Counted before the first starts: a rejected operation completes synchronously, and the count
  // must not reach zero while others of this message remain.
  in_flight_ += static_cast<std::size_t>(request.operations_size());
  for (auto& operation : *request.mutable_operations()) {
    if (!principal_ || authorize_operation(operation)) {
      begin(operation);
    }
  }
  // Flow control. The operations of this message were all accepted, so the limit is exceeded by at
  // most one message.
  if (in_flight_ >= context_.limits.operations_in_flight_max) {
    pause_reading();
  }
}

bool SessionStream::handle_hello(const v1::SessionRequest& request) {
  // Valid are exactly: the first message with `hello`, and later ones without.
  if (has_hello_ != request.has_hello()) {
    if (request.has_hello()) {
      client_ = request.hello().client().empty() ? peer() : request.hello().client();
      keep_waits_ = request.hello().keep_waits();
      revoke_leases_ = request.hello().revoke_leases();
      has_hello_ = true;
    }
    // Operations would fail one by one; one redirect is cheaper for both sides.
    if (!context_.leadership.is_leader()) {
      end_for_redirect({.code = Errc::unavailable, .detail = "this member is not the leader"});
      return false;
    }
    if (request.has_hello()) {
      acknowledge_hello();
    }
    return true;
  }
  finish({grpc::StatusCode::invalid_argument,
          has_hello_ ? "duplicate hello" : "the first message must contain hello"});
  return false;
}

void SessionStream::acknowledge_hello() {
  context_.store.peek([self = self()](const Result<View>& view) {
    if (view && !self->is_closed_) {
      v1::SessionResponse response;
      self->context_.write_header(*view, *response.mutable_header());
      self->send(response);
    }
  });
}

// A denied operation does not end the stream: other operations of the client continue.
bool SessionStream::authorize_operation(v1::Operation& operation) {
  if (const auto why = check_operation(*principal_, operation)) {
    reject(operation.id(), *why);
    return false;
  }
  mask_foreign_leases(*principal_, context_.store.state(), operation);
  return true;
}

void SessionStream::begin(const v1::Operation& operation) {
  const auto id = operation.id();
  switch (operation.what_case()) {
    case v1::Operation::kAcquire: begin_acquire(id, operation.acquire()); return;
    case v1::Operation::kRelease: {
      auto release = wire::release_from(operation.release());
      release ? propose(id, *std::move(release)) : reject(id, release.error());
      return;
    }
    case v1::Operation::kAbandon:
      propose(id, core::Abandon{.lease = core::LeaseId(operation.abandon().lease_id()),
                                .request = core::RequestId(operation.abandon().request_id())});
      return;
    case v1::Operation::kGrantLease: {
      auto grant = wire::grant_from(operation.grant_lease());
      // Taken from the stream and not from the operation, so all leases of a session have one
      // client.
      grant.client = client_;
      grant.address = peer();
      bind_to_principal(principal_.get(), grant);
      propose(id, std::move(grant));
      return;
    }
    case v1::Operation::kRenewLeases: {
      core::RenewLeases renew;
      for (const auto lease : operation.renew_leases().ids()) {
        renew.leases.emplace_back(lease);
      }
      propose(id, std::move(renew));
      return;
    }
    case v1::Operation::kRevokeLease:
      begin_revoke(id, core::LeaseId(operation.revoke_lease().id()));
      return;
    case v1::Operation::kDowngrade: {
      auto downgrade = wire::downgrade_from(operation.downgrade());
      downgrade ? propose(id, *std::move(downgrade)) : reject(id, downgrade.error());
      return;
    }
    case v1::Operation::kSetTtl: propose(id, wire::set_ttl_from(operation.set_ttl())); return;
    case v1::Operation::kConfirmHolds: begin_confirm(id, operation.confirm_holds()); return;
    case v1::Operation::WHAT_NOT_SET: break;
  }
  reject(id, {.code = Errc::invalid_argument, .detail = "operation without content"});
}

void SessionStream::begin_acquire(OperationId id, const v1::Acquire& request) {
  auto acquire = wire::acquire_from(request);
  if (!acquire) {
    reject(id, acquire.error());
    return;
  }
  // Identifies the wait across streams and leaders: a repeated request has the same key.
  const RequestKey key{.lease = acquire->lease, .request = acquire->request};
  context_.store.propose(
      *std::move(acquire),
      [self = self(), id, key, timeout = timeout_of(request)](const Result<Decided>& result) {
        self->acquire_decided(id, key, timeout, result);
      });
}

void SessionStream::begin_revoke(OperationId id, core::LeaseId lease) {
  context_.store.propose(core::RevokeLease{.lease = lease},
                         [self = self(), id, lease](const Result<Decided>& result) {
                           // Unsubscribe before the events arrive: a lease revoked by its client is
                           // not a loss.
                           self->unsubscribe(lease);
                           self->decided(id, result);
                         });
}

void SessionStream::begin_confirm(OperationId id, const v1::ConfirmHolds& request) {
  const core::LeaseId lease(request.lease_id());
  if (context_.store.state().version < core::version_2) {
    // A state of this cluster version has no unconfirmed holds, and its log cannot express the
    // command.
    propose(id, core::RenewLeases{.leases = {lease}});
    return;
  }
  core::ConfirmHolds confirm{.lease = lease};
  for (const auto token : request.fencing_tokens()) {
    confirm.tokens.emplace_back(token);
  }
  propose(id, std::move(confirm));
}

void SessionStream::propose(OperationId id, core::Command command) {
  context_.store.propose(std::move(command), [self = self(), id](const Result<Decided>& result) {
    self->decided(id, result);
  });
}

void SessionStream::reject(OperationId id, const Error& error) {
  add(id, error);
  operation_done();
}

void SessionStream::half_closed() {
  is_half_closed_ = true;
  finish_if_idle();
}

// Deciding
// -----------------------------------------------------------------------------------------

void SessionStream::decided(OperationId id, const Result<Decided>& result) {
  if (!result && result.error() == Errc::unavailable) {
    end_for_redirect(result.error());
    return;
  }
  if (!result) {
    add(id, result.error());
    operation_done();
    return;
  }
  term_ = result->term;
  revision_ = result->revision;
  if (const auto* granted = std::get_if<core::LeaseGranted>(&result->outcome)) {
    // Before the outcome is sent: a loss in the next log entry must not be missed.
    subscribe(granted->id, true);
  } else if (const auto* renewed = std::get_if<core::Renewed>(&result->outcome)) {
    for (const auto& answer : renewed->answers) {
      // A renewal after a reconnect subscribes this stream to leases granted on another one.
      answer.ttl ? subscribe(answer.id, false) : unsubscribe(answer.id);
    }
  }
  add(id, result->outcome);
  operation_done();
}

void SessionStream::acquire_decided(OperationId id, RequestKey key, std::uint64_t timeout_ms,
                                    const Result<Decided>& result) {
  if (result && std::holds_alternative<core::Queued>(result->outcome)) {
    subscribe(key.lease, false);
    wait(id, key, timeout_ms);
  } else if (result && std::holds_alternative<core::Granted>(result->outcome)) {
    subscribe(key.lease, false);
  }
  decided(id, result);
}

void SessionStream::wait(OperationId id, RequestKey key, std::uint64_t timeout_ms) {
  if (is_closed_) {
    // The client disconnected between the proposal and the decision, so it leaves the queue now.
    if (!keep_waits_ && !context_.is_stopping) {
      abandon(key, id);
    }
    return;
  }
  if (const auto it = waits_.find(key); it != waits_.end()) {
    // The same request was repeated on this stream: the newer operation gets the outcome.
    context_.waiters.detach(key, it->second.ticket);
    waits_.erase(it);
  }
  Waiting waiting{.operation = id};
  waiting.ticket = context_.waiters.attach(
      key, [self = self(), key](const Result<core::Notice>& notice, core::Revision revision) {
        self->on_notice(key, notice, revision);
      });
  if (timeout_ms < wait_ms_max) {
    waiting.timer = std::make_unique<boost::asio::steady_timer>(
        context_.store.loop(), std::chrono::milliseconds(timeout_ms));
    waiting.timer->async_wait(
        [weak = weak_from_this(), key](const boost::system::error_code& error) {
          const auto stream = std::static_pointer_cast<SessionStream>(weak.lock());
          if (stream && !error) {
            stream->time_out(key);
          }
        });
  }
  waits_.emplace(key, std::move(waiting));
}

void SessionStream::on_notice(RequestKey key, const Result<core::Notice>& notice,
                              core::Revision revision) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;
  }
  if (!notice) {
    end_for_redirect(notice.error());
    return;
  }
  const auto id = it->second.operation;
  waits_.erase(it);
  revision_ = std::max(revision_, revision);
  std::visit([&](const auto& end) { add(id, core::Outcome(end)); }, notice->end);
  finish_if_idle();
}

void SessionStream::time_out(RequestKey key) {
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;
  }
  const auto id = it->second.operation;
  // Detached before the proposal: the stream must not get the outcome twice, from the notice and
  // from the abandon.
  const auto left = context_.waiters.detach(key, it->second.ticket);
  waits_.erase(it);
  // Another call waits for the same request, so it must stay queued.
  if (left == WaiterRegistry::Remaining::some) {
    add(id, Error{.code = Errc::timed_out});
    return;
  }
  ++in_flight_;
  context_.store.propose(core::Abandon{.lease = key.lease, .request = key.request},
                         [self = self(), id](Result<Decided> result) {
                           auto* refused =
                               result ? std::get_if<core::Refused>(&result->outcome) : nullptr;
                           if (refused != nullptr && refused->error == Errc::cancelled) {
                             // The store reports the wait as cancelled; the client must see the
                             // cause.
                             refused->error.code = Errc::timed_out;
                           }
                           self->decided(id, result);
                         });
}

void SessionStream::abandon(RequestKey key, OperationId id) {
  ++in_flight_;
  propose(id, core::Abandon{.lease = key.lease, .request = key.request});
}

// Leases
// -------------------------------------------------------------------------------------------

// Idempotent: each operation on a lease calls it, because the stream does not know which leases a
// reconnected client continues to use.
void SessionStream::subscribe(core::LeaseId lease, bool is_own) {
  if (is_closed_) {
    return;
  }
  const auto [it, is_new] = leases_.try_emplace(lease.get());
  it->second.is_own |= is_own;
  if (is_new) {
    it->second.ticket =
        // `this` is safe: closed() and end_for_redirect() unsubscribe before the stream is
        // destroyed.
        context_.waiters.subscribe(lease, [this](const core::Loss& loss) { lost(loss); });
  }
}

void SessionStream::unsubscribe(core::LeaseId lease) {
  if (const auto node = leases_.extract(lease.get()); !node.empty()) {
    context_.waiters.unsubscribe(lease, node.mapped().ticket);
  }
}

void SessionStream::lost(const core::Loss& loss) {
  if (loss.why != core::EventType::forced) {
    unsubscribe(loss.lease);
    pending_response().add_lost_leases(loss.lease.get());
    schedule_flush();
    return;
  }
  auto& taken = *pending_response().add_taken();
  taken.set_lease_id(loss.lease.get());
  taken.set_request_id(loss.request.get());
  taken.set_fencing_token(loss.token.get());
  schedule_flush();
}

// Writing
// ------------------------------------------------------------------------------------------

void SessionStream::add(OperationId id, const core::Outcome& outcome) {
  auto& out = *pending_response().add_outcomes();
  out.set_id(id);
  if (principal_ && std::holds_alternative<core::Refused>(outcome)) {
    auto shown = outcome;
    redact_unreadable(principal_.get(), shown);
    wire::write(shown, out);
  } else {
    wire::write(outcome, out);
  }
  schedule_flush();
}

void SessionStream::add(OperationId id, const Error& error) {
  auto& out = *pending_response().add_outcomes();
  out.set_id(id);
  wire::write(error, out);
  schedule_flush();
}

void SessionStream::operation_done() {
  const auto left = --in_flight_;
  if (left < context_.limits.operations_in_flight_max && !is_closed_) {
    resume_reading();
  }
  if (left == 0) {
    finish_if_idle();
  }
}

v1::SessionResponse& SessionStream::pending_response() {
  if (pending_response_ == nullptr) {
    pending_response_ = google::protobuf::Arena::CreateMessage<v1::SessionResponse>(&arena_);
  }
  return *pending_response_;
}

void SessionStream::schedule_flush() {
  if (pending_response().outcomes_size() >= outcomes_per_message_max) {
    flush();
    return;
  }
  // Runs after the current log entry, so that all its outcomes share one message.
  if (!std::exchange(is_flush_due_, true)) {
    boost::asio::post(context_.store.loop(), [self = self()] {
      self->is_flush_due_ = false;
      self->flush();
    });
  }
}

void SessionStream::flush() {
  if (pending_response_ == nullptr) {
    return;
  }
  context_.write_header(revision_, term_, *pending_response_->mutable_header());
  send(*pending_response_);
  pending_response_ = nullptr;
  // Frees the whole message at once.
  arena_.Reset();
  finish_if_idle();
}

void SessionStream::finish_if_idle() {
  // A due flush still has outcomes to send; flush() checks again.
  if (!is_closed_ && is_half_closed_ && in_flight_ == 0 && waits_.empty() && !is_flush_due_) {
    finish({});
  }
}

// Called once per undecided operation when leadership is lost; only the first call acts.
void SessionStream::end_for_redirect(const Error& why) {
  if (is_closed_) {
    return;
  }
  is_closed_ = true;
  keep_waits_ = true;
  pause_reading();
  for (auto& [key, waiting] : std::exchange(waits_, {})) {
    context_.waiters.detach(key, waiting.ticket);
  }
  for (const auto& [lease, followed] : std::exchange(leases_, {})) {
    context_.waiters.unsubscribe(core::LeaseId(lease), followed.ticket);
  }
  // Flush outcomes decided before the end. They are final; without them the client would repeat
  // operations needlessly.
  flush();
  fail_stream(why);
}

void SessionStream::closed() {
  is_closed_ = true;
  for (auto& [key, waiting] : std::exchange(waits_, {})) {
    const auto left = context_.waiters.detach(key, waiting.ticket);
    if (left == WaiterRegistry::Remaining::none && !keep_waits_ && !context_.is_stopping) {
      abandon(key, waiting.operation);
    }
  }
  for (const auto& [lease, followed] : std::exchange(leases_, {})) {
    context_.waiters.unsubscribe(core::LeaseId(lease), followed.ticket);
    // A lease granted on another stream may be in use there.
    if (followed.is_own && revoke_leases_ && !context_.is_stopping) {
      ++in_flight_;
      // Operation id 0: the outcome is not sent, because the stream is closed.
      propose(0, core::RevokeLease{.lease = core::LeaseId(lease)});
    }
  }
}

}  // namespace tenure::server
