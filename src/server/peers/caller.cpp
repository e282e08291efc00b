#include "server/peers/caller.hpp"

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
  // A message of entries within limits, or one entry alone, or a part of a snapshot.
  return {.body_bytes_max =
              std::max({options.message.entries_bytes_max, options.message.entry_bytes_max,
                        options.snapshot.chunk_bytes})};
}

}  // namespace

Caller::Caller(std::shared_ptr<const Hall> hall, boost::asio::ip::tcp::socket socket,
               std::string from)
    : hall_(std::move(hall)), from_(std::move(from)), timer_(hall_->loop) {
  set_up(socket, hall_->options.patience.silence);
  auto transport = hall_->tls ? net::tls_server_transport(std::move(socket), *hall_->tls->called,
                                                          hall_->handshakes)
                              : net::plain_transport(std::move(socket));
  line_ = std::make_shared<Line>(std::move(transport), greeting_limits);
}

void Caller::start(Events events) {
  events_ = std::move(events);
  timer_.expires_after(hall_->options.patience.greeting);
  timer_.async_wait([weak = weak_from_this()](const error_code& error) {
    const auto self = weak.lock();
    if (self && !error && !self->is_closed_ && !self->is_admitted()) {
      self->break_off("it did not say in time who it is");
    }
  });
  const auto on_me = [weak = weak_from_this()](auto call) {
    return [weak, call](auto&&... arguments) {
      const auto self = weak.lock();
      if (self && !self->is_closed_) {
        call(*self, arguments...);
      }
    };
  };
  line_->open({.greeted = on_me([](Caller& me) { me.handshake_slot_.release(); }),
               .arrived = on_me([](Caller& me, const ArrivedFrame& frame) { me.arrived(frame); }),
               .wrote = on_me([](Caller& me) { me.wrote(); }),
               .broke = on_me([](Caller& me, const std::string& why) { me.break_off(why); })});
}

void Caller::arrived(const ArrivedFrame& frame) {
  switch (phase_) {
    case Phase::hello: take_hello(frame); return;
    case Phase::proof: take_proof(frame); return;
    case Phase::admitted: events_.arrived(*this, frame); return;
    case Phase::refused: return;
  }
}

void Caller::take_hello(const ArrivedFrame& frame) {
  auto hello = decode_hello(frame);
  if (!hello) {
    refuse({.reason = Reason::garbage, .text = hello.error().detail});
    return;
  }
  hello_ = *std::move(hello);
  const auto& self = hall_->options.self;
  if (auto refusal = judge(hello_, self); refusal.reason != Reason{}) {
    refuse(std::move(refusal));
    return;
  }
  if (auto* tls = line_->tls(); tls != nullptr) {
    if (auto complaint = complaint_about_peer(*tls, hello_.caller); !complaint.empty()) {
      refuse({.reason = Reason::certificate, .text = std::move(complaint)});
      return;
    }
  }
  Welcome welcome{.version = std::min(hello_.version, newest_protocol),
                  .nonce = make_nonce(),
                  .incarnation = self.incarnation,
                  .origin = self.origin,
                  .versions = self.versions};
  welcome.proof = prove(End::called, self.secret, hello_, welcome);
  expected_proof_ = prove(End::caller, self.secret, hello_, welcome);
  phase_ = Phase::proof;
  line_->write(only(encode(welcome)));
}

void Caller::take_proof(const ArrivedFrame& frame) {
  const auto proof = decode_proof(frame);
  if (!proof || !is_same_proof(proof->proof, expected_proof_)) {
    refuse({.reason = Reason::secret,
            .text = "member " + std::to_string(hello_.caller.get()) +
                    " does not have the secret of this cluster (cluster.secret_file)"});
    return;
  }
  // Not before the Welcome, whose proof authenticates this member: the caller stops for this
  // reason.
  if (auto complaint = hall_->known->meet(hello_.caller, hello_.incarnation); !complaint.empty()) {
    refuse({.reason = Reason::incarnation, .text = std::move(complaint)});
    return;
  }
  phase_ = Phase::admitted;
  timer_.cancel();
  line_->set_limits(message_limits(hall_->options));
  events_.admitted(*this);
}

void Caller::answer(const SnapshotHave& have) {
  have_ = have;
  if (!line_->is_writing()) {
    wrote();
  }
}

void Caller::wrote() {
  if (refusal_.has_value()) {
    // Then the other end closes; closing first could take the words from it before they are read.
    line_->write(only(encode(*std::exchange(refusal_, std::nullopt))));
    return;
  }
  if (have_.has_value()) {
    line_->write(only(encode(*std::exchange(have_, std::nullopt))));
  }
}

void Caller::refuse(Refusal refusal) {
  phase_ = Phase::refused;
  complaint_ = refusal.text;
  refusal_ = std::move(refusal);
  if (!line_->is_writing()) {
    wrote();
  }
  events_.refused(*this);
}

void Caller::break_off(const std::string& why) {
  if (complaint_.empty()) {
    complaint_ = why;
  }
  if (phase_ == Phase::hello && !hall_->tls && line_->bytes_read() > 0) {
    complaint_ += "; does it speak TLS, while this member does not?";
  }
  leave();
}

void Caller::leave() {
  const auto self = shared_from_this();
  close();
  events_.gone(*this);
}

void Caller::close() {
  if (!std::exchange(is_closed_, true)) {
    timer_.cancel();
    handshake_slot_.release();
    line_->close();
  }
}

}  // namespace tenure::server::peers
