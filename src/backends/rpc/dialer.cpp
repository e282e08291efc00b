#include "backends/rpc/dialer.hpp"

#include <utility>

#include "grpc/fault.hpp"
#include "net/outgoing_socket.hpp"
#include "net/transport.hpp"

namespace tenure::backends {
namespace {

using boost::system::error_code;

Error unavailable(const Endpoint& endpoint, const std::string& why) {
  return {.code = Errc::unavailable, .detail = name_of(endpoint) + ": " + why};
}

}  // namespace

Error error_from(const grpc::Status& status, const std::string& server) {
  const auto with = [&](Errc code) {
    return Error{.code = code, .detail = server + ": " + status.message};
  };
  switch (status.code) {
    case grpc::StatusCode::permission_denied:
    case grpc::StatusCode::unauthenticated: return with(Errc::permission_denied);
    case grpc::StatusCode::unimplemented: return with(Errc::unsupported);
    case grpc::StatusCode::resource_exhausted: return with(Errc::resource_exhausted);
    case grpc::StatusCode::invalid_argument: return with(Errc::invalid_argument);
    default: return with(Errc::unavailable);
  }
}

Dialer::Dialer(boost::asio::io_context& loop, Servers servers, Calls calls)
    : loop_(loop),
      servers_(std::move(servers)),
      calls_(std::move(calls)),
      pause_(loop),
      handshake_timer_(loop),
      itinerary_(servers_.endpoints) {}

void Dialer::dial() {
  if (is_stopped_ || std::exchange(is_dialing_, true)) {
    return;
  }
  const auto [server, pause] = itinerary_.next();
  if (pause == Itinerary::Pause::zero()) {
    try_one(server);
    return;
  }
  pause_.expires_after(pause);
  pause_.async_wait([self = shared_from_this(), server](const error_code& error) {
    if (!error && !self->is_stopped_) {
      self->try_one(server);
    }
  });
}

bool Dialer::follow(const Endpoint& leader) {
  // One that leads and is not ready yet names itself.
  return leader != reached_ && itinerary_.follow(leader, Itinerary::Clock::now());
}

void Dialer::stop() {
  is_stopped_ = true;
  pause_.cancel();
  drop();
}

void Dialer::try_one(const Endpoint& endpoint) {
  deadline_ = net::Connector::Clock::now() + servers_.connect_timeout;
  connector_ = std::make_shared<net::Connector>(
      loop_,
      net::Connector::Target{.host = endpoint.host,
                             .port = endpoint.port,
                             .service = servers_.kind,
                             .deadline = deadline_},
      [self = shared_from_this(), endpoint](Result<net::OutgoingSocket> socket) {
        self->connector_.reset();
        if (!socket) {
          self->failed(endpoint, unavailable(endpoint, socket.error().detail));
          return;
        }
        self->greet(endpoint, socket->into_transport(endpoint.host, self->servers_.tls.get()));
      });
  connector_->start();
}

void Dialer::greet(const Endpoint& endpoint, std::unique_ptr<net::Transport> transport) {
  greeted_ = std::make_shared<grpc::Channel>(
      loop_, std::move(transport),
      grpc::Channel::Origin{.authority = name_of(endpoint), .is_tls = servers_.tls != nullptr});
  if (!servers_.token.empty()) {
    greeted_->set_lines({{.name = "authorization", .value = "Bearer " + servers_.token}});
  }
  handshake_timer_.expires_at(deadline_);
  handshake_timer_.async_wait(
      [self = shared_from_this(), channel = greeted_, endpoint](const error_code& error) {
        if (!error && self->greeted_ == channel) {
          self->failed(endpoint, unavailable(endpoint, "no answer; is the address right?"));
        }
      });
  greeted_->open(
      [self = shared_from_this(), endpoint] {
        if (const auto channel = std::exchange(self->greeted_, nullptr)) {
          self->is_dialing_ = false;
          self->handshake_timer_.cancel();
          self->reached_ = endpoint;
          self->calls_.connected(channel);
        }
      },
      [self = shared_from_this(), raw = greeted_.get(), endpoint] {
        if (self->greeted_.get() == raw) {
          self->failed(endpoint, error_from(grpc::explain(raw->fault()), name_of(endpoint)));
        }
      });
}

void Dialer::failed(const Endpoint& endpoint, const Error& why) {
  drop();
  itinerary_.failed(endpoint, Itinerary::Clock::now());
  is_dialing_ = false;
  calls_.failed(why);
  dial();
}

void Dialer::drop() {
  handshake_timer_.cancel();
  if (const auto connector = std::exchange(connector_, nullptr)) {
    connector->cancel();
  }
  if (const auto channel = std::exchange(greeted_, nullptr)) {
    channel->close();
  }
}

}  // namespace tenure::backends
