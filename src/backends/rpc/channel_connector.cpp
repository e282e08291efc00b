#include "backends/rpc/channel_connector.hpp"

#include <utility>

#include "grpc/transport_status.hpp"
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

ChannelConnector::ChannelConnector(boost::asio::io_context& loop, Servers servers, Callbacks calls)
    : loop_(loop),
      servers_(std::move(servers)),
      callbacks_(std::move(calls)),
      retry_timer_(loop),
      handshake_timer_(loop),
      selector_(servers_.endpoints) {}

void ChannelConnector::connect() {
  if (is_stopped_ || std::exchange(is_connecting_, true)) {
    return;
  }
  const auto [server, delay] = selector_.next();
  if (delay == EndpointSelector::Delay::zero()) {
    attempt(server);
    return;
  }
  retry_timer_.expires_after(delay);
  retry_timer_.async_wait([self = shared_from_this(), server](const error_code& error) {
    if (!error && !self->is_stopped_) {
      self->attempt(server);
    }
  });
}

bool ChannelConnector::redirect_to(const Endpoint& leader) {
  // A new leader that is not ready yet redirects to itself.
  return leader != current_ && selector_.redirect_to(leader, EndpointSelector::Clock::now());
}

void ChannelConnector::stop() {
  is_stopped_ = true;
  retry_timer_.cancel();
  cancel_attempt();
}

void ChannelConnector::attempt(const Endpoint& endpoint) {
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
        self->handshake(endpoint, socket->into_transport(endpoint.host, self->servers_.tls.get()));
      });
  connector_->start();
}

// TCP, TLS and HTTP/2 share one deadline, so a server that accepts and stays silent costs one
// timeout.
void ChannelConnector::handshake(const Endpoint& endpoint,
                                 std::unique_ptr<net::Transport> transport) {
  handshaking_ = std::make_shared<grpc::Channel>(
      loop_, std::move(transport),
      grpc::Channel::Origin{.authority = name_of(endpoint), .is_tls = servers_.tls != nullptr});
  if (!servers_.token.empty()) {
    handshaking_->set_metadata({{.name = "authorization", .value = "Bearer " + servers_.token}});
  }
  handshake_timer_.expires_at(deadline_);
  handshake_timer_.async_wait(
      [self = shared_from_this(), channel = handshaking_, endpoint](const error_code& error) {
        if (!error && self->handshaking_ == channel) {
          self->failed(endpoint, unavailable(endpoint, "no answer; is the address right?"));
        }
      });
  handshaking_->open(
      [self = shared_from_this(), endpoint] {
        if (const auto channel = std::exchange(self->handshaking_, nullptr)) {
          self->is_connecting_ = false;
          self->handshake_timer_.cancel();
          self->current_ = endpoint;
          self->callbacks_.connected(channel);
        }
      },
      [self = shared_from_this(), raw = handshaking_.get(), endpoint] {
        if (self->handshaking_.get() == raw) {
          self->failed(endpoint,
                       error_from(grpc::status_from(raw->close_error()), name_of(endpoint)));
        }
      });
}

void ChannelConnector::failed(const Endpoint& endpoint, const Error& why) {
  cancel_attempt();
  selector_.mark_failed(endpoint, EndpointSelector::Clock::now());
  is_connecting_ = false;
  callbacks_.failed(why);
  connect();
}

void ChannelConnector::cancel_attempt() {
  handshake_timer_.cancel();
  if (const auto connector = std::exchange(connector_, nullptr)) {
    connector->cancel();
  }
  if (const auto channel = std::exchange(handshaking_, nullptr)) {
    channel->close();
  }
}

}  // namespace tenure::backends
