#include "server/peers/inbound_connection.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tenure::server::peers {
namespace {

using boost::system::error_code;

std::vector<Frame> only(Frame frame) {
  std::vector<Frame> frames;
  frames.push_back(std::move(frame));
  return frames;
}

FrameLimits message_limits(const PeerOptions& options) {
  // The largest frame is a batch of entries within the limits, a single large entry, or a snapshot
  // chunk.
  return {.body_bytes_max =
              std::max({options.message.entries_bytes_max, options.message.entry_bytes_max,
                        options.snapshot.chunk_bytes})};
}

}  // namespace

InboundConnection::InboundConnection(std::shared_ptr<const PeerContext> context,
                                     boost::asio::ip::tcp::socket socket, std::string from)
    : context_(std::move(context)), from_(std::move(from)), timer_(context_->loop) {
  set_up(socket, context_->options.timeouts.silence);
  auto transport = context_->tls
                       ? net::tls_server_transport(std::move(socket), *context_->tls->acceptor,
                                                   context_->handshakes)
                       : net::plain_transport(std::move(socket));
  connection_ = std::make_shared<FramedConnection>(std::move(transport), handshake_limits);
}

void InboundConnection::start(Events events) {
  events_ = std::move(events);
  // Bounds the time for which an unauthenticated peer occupies a connection.
  timer_.expires_after(context_->options.timeouts.handshake);
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (self && !error && !self->is_closed_ && !self->is_authenticated()) {
      self->fail("handshake timed out");
    }
  });
  // Weak: the transport owns this object, and a callback must not keep it alive after that.
  const auto bind_self = [weak = weak_from_this()](auto call) {
    return [weak, call](auto&&... arguments) {
      const auto self = weak.lock();
      if (self && !self->is_closed_) {
        call(*self, arguments...);
      }
    };
  };
  connection_->open(
      {.ready = bind_self([](InboundConnection& self) { self.handshake_slot_.release(); }),
       .received = bind_self(
           [](InboundConnection& self, const ReceivedFrame& frame) { self.received(frame); }),
       .written = bind_self([](InboundConnection& self) { self.written(); }),
       .failed =
           bind_self([](InboundConnection& self, const std::string& why) { self.fail(why); })});
}

void InboundConnection::received(const ReceivedFrame& frame) {
  switch (phase_) {
    case Phase::hello: take_hello(frame); return;
    case Phase::proof: take_proof(frame); return;
    case Phase::authenticated: events_.received(*this, frame); return;
    case Phase::rejected: return;
  }
}

// The acceptor proves its identity first. An initiator without the secret therefore learns nothing
// except a proof that is bound to its own nonce and cannot be reused.
void InboundConnection::take_hello(const ReceivedFrame& frame) {
  auto hello = decode_hello(frame);
  if (!hello) {
    reject({.reason = Reason::malformed, .text = hello.error().detail});
    return;
  }
  hello_ = *std::move(hello);
  const auto& self = context_->options.self;
  if (auto refusal = check_hello(hello_, self); refusal.reason != Reason{}) {
    reject(std::move(refusal));
    return;
  }
  if (auto* tls = connection_->tls(); tls != nullptr) {
    if (auto error = peer_certificate_error(*tls, hello_.initiator); !error.empty()) {
      reject({.reason = Reason::certificate, .text = std::move(error)});
      return;
    }
  }
  Welcome welcome{.version = std::min(hello_.version, newest_protocol),
                  .nonce = make_nonce(),
                  .incarnation = self.incarnation,
                  .origin = self.origin,
                  .versions = self.versions};
  welcome.proof = prove(End::acceptor, self.secret, hello_, welcome);
  // Computed now, because the Welcome is not kept.
  expected_proof_ = prove(End::initiator, self.secret, hello_, welcome);
  phase_ = Phase::proof;
  connection_->write(only(encode(welcome)));
}

void InboundConnection::take_proof(const ReceivedFrame& frame) {
  const auto proof = decode_proof(frame);
  if (!proof || !is_same_proof(proof->proof, expected_proof_)) {
    reject({.reason = Reason::secret,
            .text = "secret mismatch with member " + std::to_string(hello_.initiator.get()) +
                    " (cluster.secret_file)"});
    return;
  }
  // Rejected only after the Welcome: its proof authenticates this member, and an initiator that is
  // rejected for its incarnation quarantines itself only on behalf of an authenticated peer.
  if (auto error = context_->registry->verify(hello_.initiator, hello_.incarnation);
      !error.empty()) {
    reject({.reason = Reason::incarnation, .text = std::move(error)});
    return;
  }
  phase_ = Phase::authenticated;
  timer_.cancel();
  connection_->set_limits(message_limits(context_->options));
  events_.authenticated(*this);
}

void InboundConnection::acknowledge(const SnapshotHave& have) {
  have_ = have;
  if (!connection_->is_writing()) {
    written();
  }
}

void InboundConnection::written() {
  if (refusal_.has_value()) {
    // The initiator closes the connection. Closing it here could reset the connection before the
    // initiator has read the refusal.
    connection_->write(only(encode(*std::exchange(refusal_, std::nullopt))));
    return;
  }
  if (have_.has_value()) {
    connection_->write(only(encode(*std::exchange(have_, std::nullopt))));
  }
}

// Sends the reason before the connection ends, so that both members log the same error.
void InboundConnection::reject(Refusal refusal) {
  phase_ = Phase::rejected;
  error_ = refusal.text;
  refusal_ = std::move(refusal);
  if (!connection_->is_writing()) {
    written();
  }
  events_.rejected(*this);
}

void InboundConnection::fail(const std::string& why) {
  if (error_.empty()) {
    error_ = why;
  }
  if (phase_ == Phase::hello && !context_->tls && connection_->bytes_read() > 0) {
    error_ += "; the peer may use TLS, and this member does not";
  }
  finish();
}

void InboundConnection::finish() {
  const auto self = shared_from_this();
  close();
  events_.closed(*this);
}

void InboundConnection::close() {
  if (!std::exchange(is_closed_, true)) {
    timer_.cancel();
    handshake_slot_.release();
    connection_->close();
  }
}

}  // namespace tenure::server::peers
