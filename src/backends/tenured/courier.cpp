#include "backends/tenured/courier.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <type_traits>

#include <google/protobuf/arena.h>

#include "backends/tenured/proto_types.hpp"

namespace tenure::backends::tenured {
namespace {

/// Of one message; the server takes 64 KiB unless it is told otherwise.
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

/// The Session stream of one connection.
class Courier::Stream final : public grpc::Exchange {
 public:
  explicit Stream(std::weak_ptr<Courier> courier) : courier_(std::move(courier)) {}

 private:
  void received(std::string_view message) override {
    const auto courier = courier_.lock();
    if (!courier || courier->stream_.get() != this) {
      return;
    }
    // All parts of a message come and go together: no allocation for each. Protobuf ends the
    // process if the buffer is not aligned; it needs no zeros.
    alignas(8) std::array<char, 16 * 1024> begin;  // NOLINT(*-member-init)
    google::protobuf::Arena arena(begin.data(), begin.size());
    auto& response = *google::protobuf::Arena::CreateMessage<v1::SessionResponse>(&arena);
    if (!response.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
      cancel();
      return;
    }
    courier->received(response);
  }
  void ended(const grpc::Status& status) override {
    const auto courier = courier_.lock();
    if (courier && courier->stream_.get() == this) {
      courier->stream_ended(status);
    }
  }

  std::weak_ptr<Courier> courier_;
};

Courier::Courier(boost::asio::io_context& loop, Servers servers, std::string client)
    : loop_(loop),
      client_(std::move(client)),
      inspection_max_(servers.connect_timeout),
      inspection_(loop),
      check_(loop),
      farewell_(loop),
      watches_(loop),
      looks_(loop),
      servers_(servers.endpoints.size()),
      first_tries_left_(servers_),
      connect_timer_(loop) {
  dialer_ = std::make_shared<Dialer>(
      loop, std::move(servers),
      Dialer::Calls{.connected = [this](const auto& channel) { inspect(channel); },
                    .failed =
                        [this](const Error& why) {
                          refusal_.reset();
                          first_failed(why);
                        }});
}

void Courier::listen(Listener& listener) {
  listener_ = &listener;
  if (stream_) {
    listener_->connection_changed(true, {});
  }
}

void Courier::begin_session(const std::shared_ptr<grpc::Channel>& channel) {
  inspection_.cancel();
  refusal_.reset();
  stream_ = std::make_shared<Stream>(weak_from_this());
  channel->begin("/tenure.v1.LockService/Session", stream_);
  if (!stream_) {
    return;  // It could not even begin; disconnected() saw to it.
  }
  v1::SessionRequest hello;
  hello.mutable_hello()->set_client(client_);
  hello.mutable_hello()->set_keep_waits(true);
  stream_->send(hello);
  // follow_again() makes new ones.
  absl::erase_if(open_, [](const auto& entry) {
    return entry.second->operation.has_renew_leases() &&
           std::holds_alternative<std::monostate>(entry.second->done);
  });
  std::vector<Id> ids;
  for (auto& [id, errand] : open_) {
    errand->is_queued = false;
    ids.push_back(id);
  }
  queued_ = 0;
  send_all(ids);
  follow_again();
  watches_.connected(channel);
  looks_.connected(channel);
  if (first_) {
    connect_timer_.cancel();
    std::exchange(first_, nullptr)({});
  }
  if (listener_ != nullptr) {
    listener_->connection_changed(true, {});
  }
}

/// A server tells of losses only on the stream that used the lease last.
void Courier::follow_again() {
  std::vector<Id> ids;
  std::vector<std::uint64_t> leases(leases_.begin(), leases_.end());
  constexpr std::size_t leases_at_once = 4000;
  for (std::size_t first = 0; first < leases.size(); first += leases_at_once) {
    auto errand = std::make_unique<Errand>();
    auto& some = *errand->operation.mutable_renew_leases()->mutable_ids();
    const auto end = std::min(leases.size(), first + leases_at_once);
    some.Add(leases.begin() + static_cast<std::ptrdiff_t>(first),
             leases.begin() + static_cast<std::ptrdiff_t>(end));
    open_.emplace(++last_id_, std::move(errand));
    ids.push_back(last_id_);
  }
  send_all(ids);
}

// Errands.

void Courier::run(std::vector<ErrandPointer> errands) {
  std::vector<Id> ids;
  ids.reserve(errands.size());
  for (auto& errand : errands) {
    if (stopped_ || refusal_) {
      fail_with(*errand, stopped_ ? unavailable("the client ends") : *refusal_);
      continue;
    }
    const auto id = ++last_id_;
    auto& operation = errand->operation;
    operation.set_id(id);
    if (operation.has_acquire()) {
      const auto& acquire = operation.acquire();
      waits_.insert_or_assign(key_of(acquire), id);
    } else if (operation.has_grant_lease()) {
      const auto& grant = operation.grant_lease();
      leases_.insert(grant.id());
      heed_ttl(std::chrono::milliseconds(grant.ttl_ms()));
    } else if (operation.has_set_ttl()) {
      heed_ttl(std::chrono::milliseconds(operation.set_ttl().ttl_ms()));
    } else if (operation.has_release()) {
      holds_.released(operation.release());
    } else if (operation.has_revoke_lease()) {
      leases_.erase(operation.revoke_lease().id());
      holds_.lease_ended(operation.revoke_lease().id());
    }
    open_.emplace(id, std::move(errand));
    ids.push_back(id);
  }
  if (stream_) {
    send_all(ids);
  }
}

void Courier::send_all(const std::vector<Id>& ids) {
  v1::SessionRequest batch;
  std::size_t bytes = 0;
  // The operations stay ours, in case they have to be sent again: the batch only borrows them.
  const auto send = [&] {
    if (batch.operations_size() > 0) {
      stream_->send(batch);
      batch.mutable_operations()->UnsafeArenaExtractSubrange(0, batch.operations_size(), nullptr);
      bytes = 0;
    }
  };
  for (const auto id : ids) {
    auto& operation = open_.at(id)->operation;
    operation.set_id(id);
    const auto size = operation.ByteSizeLong() + 8;
    if (bytes + size > message_bytes) {
      send();
    }
    batch.mutable_operations()->UnsafeArenaAddAllocated(&operation);
    bytes += size;
  }
  send();
}

void Courier::abandon(LeaseId lease, RequestId request) {
  const RequestKey key{.lease = lease, .request = request};
  const auto it = waits_.find(key);
  if (it == waits_.end()) {
    return;
  }
  auto errand = std::make_unique<Errand>();
  errand->operation.mutable_abandon()->set_lease_id(lease.get());
  errand->operation.mutable_abandon()->set_request_id(request.get());
  if (!stream_) {
    call_off(*errand);
  }
  std::vector<ErrandPointer> one;
  one.push_back(std::move(errand));
  run(std::move(one));
}

// Nobody is there to say whether it was granted meanwhile. Told now, and cleaned up later.
void Courier::call_off(Errand& abandon) {
  const auto it = waits_.find(key_of(abandon.operation.abandon()));
  if (it != waits_.end()) {
    abandon.is_orphan = true;
    fail_with(*take(it->second), {.code = Errc::cancelled});
  }
}

void Courier::call_off_all() {
  std::vector<Id> abandons;
  for (const auto& [id, errand] : open_) {
    if (errand->operation.has_abandon()) {
      abandons.push_back(id);
    }
  }
  for (const auto id : abandons) {
    if (const auto it = open_.find(id); it != open_.end()) {
      call_off(*it->second);
    }
  }
}

ErrandPointer Courier::take(Id id) {
  const auto it = open_.find(id);
  auto errand = std::move(it->second);
  open_.erase(it);
  queued_ -= errand->is_queued ? 1 : 0;
  if (errand->operation.has_acquire()) {
    const auto& acquire = errand->operation.acquire();
    waits_.erase(key_of(acquire));
  }
  return errand;
}

void Courier::received(const v1::SessionResponse& response) {
  for (const auto& outcome : response.outcomes()) {
    answered(outcome);
  }
  if (!is_unsure_) {
    dialer_->praise();
  }
  for (const auto lease : response.lost_leases()) {
    leases_.erase(lease);
    holds_.lease_ended(lease);
    if (listener_ != nullptr) {
      listener_->lease_lost(LeaseId{lease});
    }
  }
  for (const auto& taken : response.taken()) {
    holds_.taken(taken.lease_id(), taken.fencing_token());
    if (listener_ != nullptr) {
      listener_->hold_force_released(LeaseId{taken.lease_id()}, RequestId{taken.request_id()});
    }
  }
  if (std::exchange(is_unsure_, false)) {
    disconnected(
        error_from({grpc::StatusCode::unavailable, "it cannot say what became of a request"},
                   channel_->authority()));
  }
  done_if_idle();
}

void Courier::answered(const v1::Outcome& outcome) {
  const auto it = open_.find(outcome.id());
  if (it == open_.end()) {
    return;
  }
  if (outcome.has_queued()) {
    it->second->queue_position = static_cast<std::size_t>(outcome.queued().position());
    queued_ += std::exchange(it->second->is_queued, true) ? 0 : 1;
    return;
  }
  if (outcome.has_refused() && outcome.refused().code() == v1::CODE_UNAVAILABLE) {
    // Nobody knows what becomes of it: it stays, and is asked again on the next connection.
    is_unsure_ = true;
    return;
  }
  const auto errand = take(outcome.id());
  if (errand->operation.has_abandon()) {
    abandon_answered(*errand, outcome);
    return;
  }
  finish(*errand, outcome);
}

void Courier::abandon_answered(const Errand& abandon, const v1::Outcome& outcome) {
  const auto key = key_of(abandon.operation.abandon());
  if (const auto it = waits_.find(key); it != waits_.end()) {
    finish(*take(it->second), outcome);
    return;
  }
  // Else the grant was told to its caller just before, and is his to give back.
  if (abandon.is_orphan && outcome.has_granted()) {
    auto errand = std::make_unique<Errand>();
    auto& release = *errand->operation.mutable_release();
    release.set_lease_id(key.lease.get());
    release.set_fencing_token(outcome.granted().fencing_token());
    std::vector<ErrandPointer> one;
    one.push_back(std::move(errand));
    run(std::move(one));
  }
}

void Courier::finish(Errand& errand, const v1::Outcome& outcome) {
  if (outcome.has_refused()) {
    auto error = error_from(outcome.refused());
    if (error == Errc::lease_lost && errand.operation.has_revoke_lease()) {
      std::get<Backend::Done<void>>(errand.done)({});
      return;
    }
    fail_with(errand, error);
    return;
  }
  if (auto* granted = std::get_if<Backend::Done<Granted>>(&errand.done)) {
    holds_.granted(errand.operation.acquire(), outcome.granted());
    (*granted)(Granted{.token = FencingToken{outcome.granted().fencing_token()},
                       .count = outcome.granted().count(),
                       .queue_position = errand.queue_position});
    return;
  }
  if (outcome.has_renewed()) {
    renewal_answered(errand, outcome.renewed());
    return;
  }
  if (auto* told = std::get_if<Backend::Done<void>>(&errand.done)) {
    (*told)({});
  }
}

void Courier::renewal_answered(Errand& errand, const v1::Renewed& renewed) {
  if (renewed.unconfirmed_size() > 0) {
    confirm(renewed);
    // Not lost, and not renewed either: the next renewal will say.
    fail_with(errand, unavailable("the cluster was restored; the lease is being confirmed"));
    return;
  }
  const auto& operation = errand.operation;
  const bool is_alive = renewed.ttl_ms_size() > 0 && renewed.ttl_ms(0) > 0;
  if (operation.has_set_ttl() || operation.has_confirm_holds()) {
    if (!is_alive) {
      lost(operation.has_set_ttl() ? operation.set_ttl().lease_id()
                                   : operation.confirm_holds().lease_id());
    }
    if (auto* told = std::get_if<Backend::Done<void>>(&errand.done)) {
      (*told)(is_alive ? Result<void>() : fail(Errc::lease_lost, "the lease has ended"));
    }
    return;
  }
  Renewed answer;
  const auto& ids = operation.renew_leases().ids();
  for (int n = 0; n < renewed.ttl_ms_size(); ++n) {
    answer.push_back(renewed.ttl_ms(n) > 0);
    if (!answer.back() && n < ids.size()) {
      lost(ids[n]);
    }
  }
  if (auto* told = std::get_if<Backend::Done<Renewed>>(&errand.done)) {
    (*told)(std::move(answer));
  }
}

void Courier::confirm(const v1::Renewed& renewed) {
  std::vector<ErrandPointer> errands;
  for (const auto lease : renewed.unconfirmed()) {
    auto errand = std::make_unique<Errand>();
    auto& confirmation = *errand->operation.mutable_confirm_holds();
    confirmation.set_lease_id(lease);
    for (const auto token : holds_.tokens(lease)) {
      confirmation.add_fencing_tokens(token);
    }
    errands.push_back(std::move(errand));
  }
  run(std::move(errands));
}

void Courier::lost(std::uint64_t lease) {
  holds_.lease_ended(lease);
  if (leases_.erase(lease) > 0 && listener_ != nullptr) {
    listener_->lease_lost(LeaseId{lease});
  }
}

void Courier::fail_with(Errand& errand, const Error& error) {
  std::visit(
      [&](auto& done) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(done)>, std::monostate>) {
          done(std::unexpected(error));
        }
      },
      errand.done);
}

// The rest.

void Courier::watch(WatchId id, WatchRequest request, Backend::Sink sink,
                    std::function<void()> begun) {
  watches_.add(id, std::move(request), std::move(sink), std::move(begun));
}

}  // namespace tenure::backends::tenured
