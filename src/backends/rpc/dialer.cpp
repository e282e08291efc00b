#include "backends/rpc/dialer.hpp"

#include <utility>

#include "backends/net/outgoing.hpp"
#include "h2/fault.hpp"
#include "h2/transport.hpp"
#include "sys/chance.hpp"

namespace tenure::backends {
namespace {

using boost::system::error_code;

/// Clients that lost the same server do not come back in step.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds pause) {
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  return pause - std::chrono::milliseconds(half == 0 ? 0 : sys::random_id() % half);
}

h2::Status cannot(const error_code& error, const std::string& hint) {
  return {h2::StatusCode::unavailable, error.message() + "; " + hint};
}

}  // namespace

Error error_from(const h2::Status& status, const std::string& server) {
  const auto with = [&](Errc code) {
    return Error{.code = code, .detail = server + ": " + status.message};
  };
  switch (status.code) {
    case h2::StatusCode::permission_denied:
    case h2::StatusCode::unauthenticated: return with(Errc::permission_denied);
    case h2::StatusCode::unimplemented: return with(Errc::unsupported);
    case h2::StatusCode::resource_exhausted: return with(Errc::resource_exhausted);
    case h2::StatusCode::invalid_argument: return with(Errc::invalid_argument);
    default: return with(Errc::unavailable);
  }
}

Dialer::Dialer(boost::asio::io_context& loop, Servers servers, Calls calls)
    : loop_(loop),
      servers_(std::move(servers)),
      calls_(std::move(calls)),
      resolver_(loop),
      pause_(loop),
      patience_(loop),
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
  pause_.expires_after(with_jitter(pause));
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
  patience_.cancel();
  resolver_.cancel();
  if (const auto socket = std::exchange(socket_, nullptr)) {
    error_code ignored;
    socket->close(ignored);
  }
  if (const auto channel = std::exchange(greeted_, nullptr)) {
    channel->close();
  }
}

void Dialer::try_one(const Endpoint& endpoint) {
  const auto attempt = ++attempt_;
  patience_.expires_after(servers_.connect_timeout);
  patience_.async_wait([self = shared_from_this(), attempt, endpoint](const error_code& error) {
    if (!error && attempt == self->attempt_) {
      self->failed(endpoint, {h2::StatusCode::unavailable, "no answer; is the address right?"});
    }
  });
  resolver_.async_resolve(endpoint.host, std::to_string(endpoint.port),
                          [self = shared_from_this(), attempt, endpoint](
                              const error_code& error, const tcp::resolver::results_type& found) {
                            if (self->is_stopped_ || attempt != self->attempt_) {
                              return;
                            }
                            error ? self->failed(endpoint, cannot(error, "is the name right?"))
                                  : self->resolved(endpoint, found);
                          });
}

void Dialer::resolved(const Endpoint& endpoint, const tcp::resolver::results_type& found) {
  socket_ = std::make_shared<tcp::socket>(loop_);
  connect_to_first(socket_, found,
                   [self = shared_from_this(), socket = socket_, attempt = attempt_,
                    endpoint](const error_code& error) {
                     if (self->is_stopped_ || attempt != self->attempt_) {
                       return;
                     }
                     self->socket_.reset();
                     if (error) {
                       self->failed(endpoint,
                                    cannot(error, "does " + self->servers_.kind + " run there?"));
                       return;
                     }
                     error_code ignored;
                     socket->set_option(tcp::no_delay(true), ignored);
                     self->greet(endpoint, std::move(*socket));
                   });
}

void Dialer::greet(const Endpoint& endpoint, tcp::socket socket) {
  const auto number = socket.native_handle();
  auto transport = servers_.tls
                       ? h2::tls_transport_to(endpoint.host, std::move(socket), *servers_.tls)
                       : h2::plain_transport(std::move(socket));
  greeted_ = std::make_shared<h2::Channel>(
      loop_, closed_in_child(std::move(transport), number),
      h2::Channel::Origin{.authority = name_of(endpoint), .is_tls = servers_.tls != nullptr});
  if (!servers_.token.empty()) {
    greeted_->set_lines({{.name = "authorization", .value = "Bearer " + servers_.token}});
  }
  greeted_->open(
      [self = shared_from_this(), endpoint] {
        const auto channel = std::exchange(self->greeted_, nullptr);
        if (channel && !self->is_stopped_) {
          self->is_dialing_ = false;
          self->patience_.cancel();
          ++self->attempt_;
          self->reached_ = endpoint;
          self->calls_.connected(channel);
        }
      },
      [self = shared_from_this(), attempt = attempt_, endpoint] {
        if (self->greeted_ && attempt == self->attempt_ && !self->is_stopped_) {
          const auto channel = std::exchange(self->greeted_, nullptr);
          self->failed(endpoint, h2::explain(channel->fault()));
        }
      });
}

void Dialer::failed(const Endpoint& endpoint, const h2::Status& why) {
  ++attempt_;
  patience_.cancel();
  if (const auto socket = std::exchange(socket_, nullptr)) {
    error_code ignored;
    socket->close(ignored);
  }
  if (const auto channel = std::exchange(greeted_, nullptr)) {
    channel->close();
  }
  itinerary_.failed(endpoint, Itinerary::Clock::now());
  is_dialing_ = false;
  calls_.failed(error_from(why, name_of(endpoint)));
  dial();
}

}  // namespace tenure::backends
