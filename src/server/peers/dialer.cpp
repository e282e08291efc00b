#include "server/peers/dialer.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>

#include "server/config/units.hpp"

namespace tenure::server::peers {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using raft::Severity;

}  // namespace

Dialer::Dialer(std::shared_ptr<const Hall> hall, raft::MemberId peer, std::string address)
    : hall_(std::move(hall)),
      peer_(peer),
      address_(std::move(address)),
      timer_(hall_->loop),
      backoff_({.min = hall_->options.patience.first_pause,
                .max = hall_->options.patience.longest_pause}),
      outbox_(hall_->options.outbox),
      snapshots_(hall_->options.snapshot) {
  counts_.peer = peer.get();
}

void Dialer::start() {
  dial();
}

void Dialer::dial() {
  const auto address = parse_address(address_);
  if (!address) {
    tell(Severity::error, name() + " cannot be reached: " + address.error().detail);
    return;
  }
  ++attempt_;
  phase_ = Phase::connecting;
  connector_ = std::make_shared<net::Connector>(
      hall_->loop,
      net::Connector::Target{
          .host = address->host,
          .port = address->port,
          .service = "a tenured",
          .deadline = net::Connector::Clock::now() + hall_->options.patience.connect},
      [weak = weak_from_this()](Result<net::OutgoingSocket> socket) {
        if (const auto self = weak.lock()) {
          self->connector_.reset();
          socket ? self->connected(*socket) : self->broke(socket.error().detail);
        }
      });
  connector_->start();
}

void Dialer::connected(net::OutgoingSocket& socket) {
  set_up(socket.socket(), hall_->options.patience.silence);
  phase_ = Phase::greeting;
  expect_within(hall_->options.patience.greeting, "it does not answer our greeting");
  line_ = std::make_shared<Line>(
      socket.into_transport_to_any_host(hall_->tls ? hall_->tls->caller.get() : nullptr,
                                        hall_->handshakes),
      greeting_limits);
  const auto on_me = [weak = weak_from_this(), attempt = attempt_](auto call) {
    return [weak, attempt, call](auto&&... arguments) {
      const auto self = weak.lock();
      if (self && !self->is_stale(attempt)) {
        call(*self, arguments...);
      }
    };
  };
  line_->open({.greeted = on_me([](Dialer& me) { me.greet(); }),
               .arrived = on_me([](Dialer& me, const ArrivedFrame& frame) { me.arrived(frame); }),
               .wrote = on_me([](Dialer& me) { me.pump(); }),
               .broke = on_me([](Dialer& me, const std::string& why) { me.broke(why); })});
}

void Dialer::greet() {
  if (auto* tls = line_->tls(); tls != nullptr) {
    if (const auto complaint = complaint_about_peer(*tls, peer_); !complaint.empty()) {
      broke(complaint);
      return;
    }
  }
  const auto& self = hall_->options.self;
  hello_ = {.version = protocol_,
            .cluster = self.cluster,
            .caller = self.member,
            .called = peer_,
            .nonce = make_nonce(),
            .address = self.address,
            .incarnation = self.incarnation,
            .origin = self.origin,
            .versions = self.versions};
  std::vector<Frame> frames;
  frames.push_back(encode(hello_));
  line_->write(std::move(frames));
}

void Dialer::arrived(const ArrivedFrame& frame) {
  if (kind_of(frame) == static_cast<std::uint8_t>(Kind::refusal)) {
    refused(frame);
    return;
  }
  if (phase_ == Phase::greeting) {
    welcomed(frame);
    return;
  }
  const auto have = decode_have(frame);
  if (!have) {
    broke(have.error().detail);
    return;
  }
  snapshots_.heard(*have, std::chrono::steady_clock::now());
  pump();
}

void Dialer::refused(const ArrivedFrame& frame) {
  const auto refusal = decode_refusal(frame);
  if (refusal && refusal->reason == Reason::version && phase_ == Phase::greeting &&
      protocol_ > oldest_protocol) {
    drop_connection();
    protocol_ = oldest_protocol;
    dial();
    return;
  }
  // Only the proof in a Welcome or a certificate shows that a member refuses us, and not another
  // process that listens at its address.
  const bool is_authenticated = phase_ == Phase::open || line_->tls() != nullptr;
  // One that joined is known by those who added it; only a founder can have been another before.
  const bool is_founder = hall_->options.self.origin != raft::Origin{};
  if (refusal && refusal->reason == Reason::incarnation && is_authenticated && is_founder &&
      hall_->known->disown()) {
    hall_->options.report(Severity::error, "this member takes no part: " + refusal->text);
  }
  is_refused_ = refusal.has_value();
  broke(refusal ? "it refuses us: " + refusal->text : refusal.error().detail);
}

void Dialer::welcomed(const ArrivedFrame& frame) {
  const auto welcome = decode_welcome(frame);
  if (!welcome) {
    broke(welcome.error().detail);
    return;
  }
  if (welcome->version < oldest_protocol || welcome->version > hello_.version) {
    broke("it answers our greeting of version " + std::to_string(hello_.version) +
          " with version " + std::to_string(welcome->version));
    return;
  }
  const auto& self = hall_->options.self;
  if (!is_same_proof(welcome->proof, prove(End::called, self.secret, hello_, *welcome))) {
    broke("it does not have the secret of this cluster (cluster.secret_file)");
    return;
  }
  auto complaint = complaint_about_origin(peer_, welcome->origin, self);
  if (complaint.empty()) {
    complaint = hall_->known->meet(peer_, welcome->incarnation);
  }
  if (!complaint.empty()) {
    broke(complaint);
    return;
  }
  phase_ = Phase::open;
  versions_ = welcome->versions;
  timer_.cancel();
  opened_ = std::chrono::steady_clock::now();
  ++counts_.connections;
  // What waits here is older than the connection; there should be nothing.
  outbox_.clear();
  snapshots_.connected();
  if (!is_refused_) {
    tell(Severity::note, "connected to " + name());
  }
  push(encode(Proof{.proof = prove(End::caller, self.secret, hello_, *welcome)}));
}

void Dialer::send(raft::Message message) {
  if (phase_ != Phase::open) {
    ++counts_.messages_dropped;
    return;
  }
  if (auto* snapshot = std::get_if<raft::InstallSnapshot>(&message)) {
    const auto now = std::chrono::steady_clock::now();
    snapshots_.give_up_if_stalled(now);
    counts_.messages_dropped += snapshots_.offer(std::move(*snapshot), now) ? 0 : 1;
    pump();
    return;
  }
  if (auto* append = std::get_if<raft::AppendEntries>(&message)) {
    for (auto& part : split(std::move(*append), hall_->options.message)) {
      push(encode(std::move(part)));
    }
    return;
  }
  push(encode(message));
}

bool Dialer::takes_snapshot(raft::Term term) {
  snapshots_.give_up_if_stalled(std::chrono::steady_clock::now());
  snapshots_.raise(term);
  return phase_ == Phase::open && snapshots_.is_idle();
}

void Dialer::push(Frame frame) {
  if (!outbox_.push(std::move(frame))) {
    ++counts_.messages_dropped;
    return;
  }
  ++counts_.messages_sent;
  pump();
}

void Dialer::pump() {
  if (phase_ != Phase::open || line_->is_writing()) {
    return;
  }
  auto batch = outbox_.take_batch();
  // One part of a snapshot between two batches: neither waits for more than one of the other.
  if (auto chunk = snapshots_.next()) {
    counts_.snapshot_chunks_sent += chunk->bodies.empty() ? 0 : 1;
    batch.push_back(std::move(*chunk));
  }
  line_->write(std::move(batch));
}

void Dialer::hurry() {
  if (phase_ == Phase::waiting && attempt_ > 0) {
    timer_.cancel();
    dial();
  }
}

void Dialer::broke(const std::string& why) {
  const bool was_open = phase_ == Phase::open;
  if (was_open) {
    // One that welcomes us only to break off is not called more and more often.
    const auto lasted = std::chrono::steady_clock::now() - opened_;
    if (lasted > hall_->options.patience.longest_pause) {
      backoff_.reset();
    }
    hall_->known->part(peer_);
    tell(Severity::warning, "lost " + name() + ": " + why);
  } else {
    tell(Severity::warning, "cannot reach " + name() + ": " + why);
  }
  drop_connection();
  // The peer may be another program when it is called again.
  protocol_ = newest_protocol;
  wait_and_dial();
}

void Dialer::drop_connection() {
  counts_ = counts();
  if (line_) {
    line_->close();
    line_.reset();
  }
  counts_.messages_dropped += outbox_.size();
  outbox_.clear();
  if (const auto connector = std::exchange(connector_, nullptr)) {
    connector->cancel();
  }
}

void Dialer::wait_and_dial() {
  ++attempt_;
  phase_ = Phase::waiting;
  snapshots_.give_up_if_stalled(std::chrono::steady_clock::now());
  timer_.expires_after(backoff_.next());
  timer_.async_wait([weak = weak_from_this(), attempt = attempt_](const error_code& error) {
    const auto self = weak.lock();
    if (self && !error && !self->is_stale(attempt)) {
      self->dial();
    }
  });
}

void Dialer::expect_within(std::chrono::milliseconds patience, const char* what) {
  timer_.expires_after(patience);
  timer_.async_wait(
      [weak = weak_from_this(), attempt = attempt_, phase = phase_, what](const error_code& error) {
        const auto self = weak.lock();
        if (self && !error && !self->is_stale(attempt) && self->phase_ == phase) {
          self->broke(what);
        }
      });
}

void Dialer::close() {
  counts_ = counts();
  phase_ = Phase::closed;
  if (line_) {
    line_->close();
    line_.reset();
  }
  if (const auto connector = std::exchange(connector_, nullptr)) {
    connector->cancel();
  }
  timer_.cancel();
  outbox_.clear();
}

void Dialer::sweep() {
  const auto now = std::chrono::steady_clock::now();
  snapshots_.give_up_if_stalled(now);
  if (is_refused_ && phase_ == Phase::open &&
      now - opened_ > hall_->options.patience.longest_pause) {
    is_refused_ = false;
    tell(Severity::note, "connected to " + name());
  }
}

std::optional<raft::Versions> Dialer::versions() const {
  return phase_ == Phase::open ? std::optional(versions_) : std::nullopt;
}

PeerTraffic Dialer::counts() const {
  auto counts = counts_;
  counts.is_connected = phase_ == Phase::open;
  if (line_) {
    counts.bytes_sent += line_->bytes_written();
    counts.bytes_received += line_->bytes_read();
  }
  return counts;
}

void Dialer::tell(Severity severity, const std::string& what) {
  if (what != told_) {
    told_ = what;
    hall_->options.report(severity, what);
  }
}

std::string Dialer::name() const {
  return "member " + std::to_string(peer_.get()) + " at " + address_;
}

}  // namespace tenure::server::peers
