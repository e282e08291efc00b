#include "server/peers/outbound_connection.hpp"

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

}  // namespace

OutboundConnection::OutboundConnection(std::shared_ptr<const PeerContext> context,
                                       raft::MemberId peer, std::string address)
    : context_(std::move(context)),
      peer_(peer),
      address_(std::move(address)),
      timer_(context_->loop),
      backoff_({.min = context_->options.timeouts.backoff_min,
                .max = context_->options.timeouts.backoff_max}),
      outbox_(context_->options.outbox),
      snapshots_(context_->options.snapshot) {
  counts_.peer = peer.get();
}

void OutboundConnection::start() {
  connect();
}

// Each attempt gets a number. Callbacks of an earlier attempt compare it and do nothing, so a late
// timer or a late read cannot affect the present connection.
void OutboundConnection::connect() {
  const auto address = parse_address(address_);
  if (!address) {
    report(log::Level::error, "peer_address_invalid", address.error().detail);
    return;
  }
  ++attempt_;
  phase_ = Phase::connecting;
  connector_ = std::make_shared<net::Connector>(
      context_->loop,
      net::Connector::Target{
          .host = address->host,
          .port = address->port,
          .service = "a tenured",
          .deadline = net::Connector::Clock::now() + context_->options.timeouts.connect},
      [weak = weak_from_this()](Result<net::OutgoingSocket> socket) {
        if (const auto self = weak.lock()) {
          self->connector_.reset();
          socket ? self->start_handshake(*socket) : self->disconnected(socket.error().detail);
        }
      });
  connector_->start();
}

void OutboundConnection::start_handshake(net::OutgoingSocket& socket) {
  set_up(socket.socket(), context_->options.timeouts.silence);
  phase_ = Phase::handshake;
  start_timeout(context_->options.timeouts.handshake, "handshake timed out");
  connection_ = std::make_shared<FramedConnection>(
      socket.into_transport_to_any_host(context_->tls ? context_->tls->initiator.get() : nullptr,
                                        context_->handshakes),
      handshake_limits);
  const auto bind_self = [weak = weak_from_this(), attempt = attempt_](auto call) {
    return [weak, attempt, call](auto&&... arguments) {
      const auto self = weak.lock();
      if (self && !self->is_stale(attempt)) {
        call(*self, arguments...);
      }
    };
  };
  connection_->open(
      {.ready = bind_self([](OutboundConnection& self) { self.send_hello(); }),
       .received = bind_self(
           [](OutboundConnection& self, const ReceivedFrame& frame) { self.received(frame); }),
       .written = bind_self([](OutboundConnection& self) { self.write_next(); }),
       .failed = bind_self(
           [](OutboundConnection& self, const std::string& why) { self.disconnected(why); })});
}

// The certificate is checked before the Hello: a process with the certificate of another member
// must not learn the cluster id or the address of this member.
void OutboundConnection::send_hello() {
  if (auto* tls = connection_->tls(); tls != nullptr) {
    if (const auto error = peer_certificate_error(*tls, peer_); !error.empty()) {
      disconnected(error);
      return;
    }
  }
  const auto& self = context_->options.self;
  hello_ = {.version = protocol_,
            .cluster = self.cluster,
            .initiator = self.member,
            .acceptor = peer_,
            .nonce = make_nonce(),
            .address = self.address,
            .incarnation = self.incarnation,
            .origin = self.origin,
            .versions = self.versions};
  std::vector<Frame> frames;
  frames.push_back(encode(hello_));
  connection_->write(std::move(frames));
}

void OutboundConnection::received(const ReceivedFrame& frame) {
  if (kind_of(frame) == static_cast<std::uint8_t>(Kind::refusal)) {
    handle_refusal(frame);
    return;
  }
  if (phase_ == Phase::handshake) {
    handle_welcome(frame);
    return;
  }
  const auto have = decode_have(frame);
  if (!have) {
    disconnected(have.error().detail);
    return;
  }
  snapshots_.heard(*have, std::chrono::steady_clock::now());
  write_next();
}

// A Refusal of the protocol version is repeated once with the oldest version, because a member with
// an older program refuses a Hello that it does not know. Any other Refusal ends the attempt.
void OutboundConnection::handle_refusal(const ReceivedFrame& frame) {
  const auto refusal = decode_refusal(frame);
  if (refusal && refusal->reason == Reason::version && phase_ == Phase::handshake &&
      protocol_ > oldest_protocol) {
    close_connection();
    protocol_ = oldest_protocol;
    connect();
    return;
  }
  // Only the proof in a Welcome or a certificate shows that the refusal comes from a member and not
  // from another process that listens at its address.
  const bool is_authenticated = phase_ == Phase::open || connection_->tls() != nullptr;
  // Only an initial member can have had another incarnation: a joined member got its id from the
  // group when it was added.
  const bool is_initial_member = context_->options.self.origin != raft::Origin{};
  if (refusal && refusal->reason == Reason::incarnation && is_authenticated && is_initial_member &&
      context_->registry->quarantine()) {
    context_->options.report(log::Level::error, "member_quarantined", {{"error", refusal->text}});
  }
  is_refused_ = refusal.has_value();
  disconnected(refusal ? "rejected by the peer: " + refusal->text : refusal.error().detail);
}

// Order of the checks: protocol version, secret, origin, incarnation. Origin and incarnation are
// trusted only after the proof, and the proof of this member is sent only to an accepted peer.
void OutboundConnection::handle_welcome(const ReceivedFrame& frame) {
  const auto welcome = decode_welcome(frame);
  if (!welcome) {
    disconnected(welcome.error().detail);
    return;
  }
  if (welcome->version < oldest_protocol || welcome->version > hello_.version) {
    disconnected("unsupported protocol version: Hello of version " +
                 std::to_string(hello_.version) + ", Welcome of version " +
                 std::to_string(welcome->version));
    return;
  }
  const auto& self = context_->options.self;
  if (!is_same_proof(welcome->proof, prove(End::acceptor, self.secret, hello_, *welcome))) {
    disconnected("secret mismatch (cluster.secret_file)");
    return;
  }
  auto error = origin_error(peer_, welcome->origin, self);
  if (error.empty()) {
    error = context_->registry->verify(peer_, welcome->incarnation);
  }
  if (!error.empty()) {
    disconnected(error);
    return;
  }
  phase_ = Phase::open;
  versions_ = welcome->versions;
  timer_.cancel();
  opened_ = std::chrono::steady_clock::now();
  ++counts_.connections;
  // Messages older than the connection are stale. The outbox is normally empty here.
  outbox_.clear();
  snapshots_.connected();
  if (!is_refused_) {
    report(log::Level::info, "peer_connected");
  }
  // First on the connection: the acceptor processes no message before the proof.
  push(encode(Proof{.proof = prove(End::initiator, self.secret, hello_, *welcome)}));
}

void OutboundConnection::send(raft::Message message) {
  if (phase_ != Phase::open) {
    ++counts_.messages_dropped;
    return;
  }
  if (auto* snapshot = std::get_if<raft::InstallSnapshot>(&message)) {
    const auto now = std::chrono::steady_clock::now();
    snapshots_.give_up_if_stalled(now);
    counts_.messages_dropped += snapshots_.offer(std::move(*snapshot), now) ? 0 : 1;
    write_next();
    return;
  }
  if (auto* append = std::get_if<raft::AppendEntries>(&message)) {
    for (auto& part : split(std::move(*append), context_->options.message)) {
      push(encode(std::move(part)));
    }
    return;
  }
  push(encode(message));
}

// Aborts a stalled transfer first; otherwise a peer that vanished during a transfer would block all
// later snapshots.
bool OutboundConnection::takes_snapshot(raft::Term term) {
  snapshots_.give_up_if_stalled(std::chrono::steady_clock::now());
  snapshots_.raise(term);
  return phase_ == Phase::open && snapshots_.is_idle();
}

void OutboundConnection::push(Frame frame) {
  if (!outbox_.push(std::move(frame))) {
    ++counts_.messages_dropped;
    return;
  }
  ++counts_.messages_sent;
  write_next();
}

// At most one write is in flight. Messages that arrive during a write form the next batch, so the
// batch size adapts to the speed of the peer.
void OutboundConnection::write_next() {
  if (phase_ != Phase::open || connection_->is_writing()) {
    return;
  }
  auto batch = outbox_.take_batch();
  // One snapshot chunk between two batches: heartbeats wait for at most one chunk, and a busy log
  // does not starve the snapshot.
  if (auto chunk = snapshots_.next()) {
    counts_.snapshot_chunks_sent += chunk->bodies.empty() ? 0 : 1;
    batch.push_back(std::move(*chunk));
  }
  connection_->write(std::move(batch));
}

void OutboundConnection::connect_now() {
  if (phase_ == Phase::waiting && attempt_ > 0) {
    timer_.cancel();
    connect();
  }
}

void OutboundConnection::disconnected(const std::string& why) {
  const bool was_open = phase_ == Phase::open;
  if (was_open) {
    // A connection that breaks right after its Welcome keeps the backoff; otherwise a peer that
    // accepts and disconnects would be retried in a tight loop.
    const auto lasted = std::chrono::steady_clock::now() - opened_;
    if (lasted > context_->options.timeouts.backoff_max) {
      backoff_.reset();
    }
    context_->registry->forget(peer_);
    report(log::Level::warning, "peer_disconnected", why);
  } else {
    report(log::Level::warning, "peer_unreachable", why);
  }
  close_connection();
  // The peer may run a newer program at the next attempt.
  protocol_ = newest_protocol;
  schedule_reconnect();
}

void OutboundConnection::close_connection() {
  counts_ = counts();
  if (connection_) {
    connection_->close();
    connection_.reset();
  }
  counts_.messages_dropped += outbox_.size();
  outbox_.clear();
  if (const auto connector = std::exchange(connector_, nullptr)) {
    connector->cancel();
  }
}

// Jittered exponential backoff: after a restart of one member its peers do not reconnect at the
// same time.
void OutboundConnection::schedule_reconnect() {
  ++attempt_;
  phase_ = Phase::waiting;
  snapshots_.give_up_if_stalled(std::chrono::steady_clock::now());
  timer_.expires_after(backoff_.next());
  timer_.async_wait([weak = weak_from_this(), attempt = attempt_](const error_code& error) {
    const auto self = weak.lock();
    if (self && !error && !self->is_stale(attempt)) {
      self->connect();
    }
  });
}

void OutboundConnection::start_timeout(std::chrono::milliseconds timeouts, const char* what) {
  timer_.expires_after(timeouts);
  timer_.async_wait(
      [weak = weak_from_this(), attempt = attempt_, phase = phase_, what](const error_code& error) {
        const auto self = weak.lock();
        if (self && !error && !self->is_stale(attempt) && self->phase_ == phase) {
          self->disconnected(what);
        }
      });
}

void OutboundConnection::close() {
  counts_ = counts();
  phase_ = Phase::closed;
  if (connection_) {
    connection_->close();
    connection_.reset();
  }
  if (const auto connector = std::exchange(connector_, nullptr)) {
    connector->cancel();
  }
  timer_.cancel();
  outbox_.clear();
}

void OutboundConnection::sweep() {
  const auto now = std::chrono::steady_clock::now();
  snapshots_.give_up_if_stalled(now);
  if (is_refused_ && phase_ == Phase::open &&
      now - opened_ > context_->options.timeouts.backoff_max) {
    is_refused_ = false;
    report(log::Level::info, "peer_connected");
  }
}

std::optional<raft::Versions> OutboundConnection::versions() const {
  return phase_ == Phase::open ? std::optional(versions_) : std::nullopt;
}

PeerTraffic OutboundConnection::counts() const {
  auto counts = counts_;
  counts.is_connected = phase_ == Phase::open;
  if (connection_) {
    counts.bytes_sent += connection_->bytes_written();
    counts.bytes_received += connection_->bytes_read();
  }
  return counts;
}

void OutboundConnection::report(log::Level level, const std::string& event,
                                const std::string& error) {
  const auto change = std::pair(event, error);
  if (change == std::exchange(reported_, change)) {
    return;
  }
  if (error.empty()) {
    context_->options.report(level, event, {{"peer", peer_}, {"address", address_}});
  } else {
    context_->options.report(level, event,
                             {{"peer", peer_}, {"address", address_}, {"error", error}});
  }
}

}  // namespace tenure::server::peers
