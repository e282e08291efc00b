#include "grpc/server.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include <boost/asio/post.hpp>
#include <fcntl.h>

namespace tenure::grpc {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Delay before accept() is retried after an error, for example without free descriptors.
constexpr std::chrono::milliseconds accept_pause{100};
/// Maximum interval between keep-alive checks.
constexpr std::chrono::milliseconds check_every_max{1000};

}  // namespace

Server::Server(ServerContext& context, ServerOptions options)
    : context_(context),
      options_(std::move(options)),
      limiter_(options_.handshakes),
      shares_(net::Shares::three_quarters_of(options_.connections_max)),
      acceptor_(context.work),
      timer_(context.work) {}

Result<std::uint16_t> Server::listen() {
  if (options_.tls) {
    auto context = net::server_context(*options_.tls);
    if (!context) {
      return std::unexpected(context.error());
    }
    tls_ = *std::move(context);
    // One thread: a transport requires an executor that runs one handler at a time.
    handshakes_.emplace(1);
  }
  const auto refused = [&](const error_code& error) {
    return fail(Errc::unavailable, "cannot listen on " + options_.host + ":" +
                                       std::to_string(options_.port) + ": " + error.message());
  };
  error_code error;
  tcp::resolver resolver(context_.loop);
  const auto found =
      resolver.resolve(options_.host, std::to_string(options_.port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return refused(error);
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) {
    // A child process must not inherit the port.
    ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
    acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor_.bind(endpoint, error);
  }
  if (!error) {
    acceptor_.listen(asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    return refused(error);
  }
  return acceptor_.local_endpoint().port();
}

void Server::open() {
  asio::post(context_.loop, [self = shared_from_this()] {
    self->accept();
    self->check_soon();
  });
}

void Server::renew_tls(std::unique_ptr<asio::ssl::context> context) {
  asio::post(context_.loop, [self = shared_from_this(), context = std::move(context)]() mutable {
    // Open connections hold their own reference to the SSL_CTX.
    self->tls_ = std::move(context);
  });
}

void Server::stop_accepting() {
  std::promise<void> done;
  asio::post(context_.loop, [&] {
    is_accepting_stopped_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    done.set_value();
  });
  done.get_future().wait();
}

void Server::stop(std::chrono::milliseconds timeout) {
  std::promise<void> done;
  asio::post(context_.loop, [&] { drain_connections(timeout, [&] { done.set_value(); }); });
  done.get_future().wait();
  if (handshakes_) {
    // The sockets are closed, so pending handshakes end soon.
    handshakes_->join();
  }
}

void Server::drain_connections(std::chrono::milliseconds timeout, std::function<void()> done) {
  on_empty_ = std::move(done);
  timer_.expires_after(timeout);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    const auto rest = self->connections_;
    for (const auto& connection : rest) {
      if (!error) {
        connection->close();
      }
    }
  });
  // A copy: a drained connection can close at once and remove itself.
  const auto all = connections_;
  for (const auto& connection : all) {
    connection->drain();
  }
  done_if_empty();
}

void Server::done_if_empty() {
  if (on_empty_ && connections_.empty()) {
    timer_.cancel();
    std::exchange(on_empty_, {})();
  }
}

void Server::accept() {
  if (is_accepting_stopped_) {
    return;
  }
  acceptor_.async_accept([self = shared_from_this()](const error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || self->is_accepting_stopped_) {
      return;
    }
    if (error) {
      auto timer = std::make_shared<asio::steady_timer>(self->context_.work, accept_pause);
      timer->async_wait([self, timer](const error_code&) { self->accept(); });
      return;
    }
    self->admit(std::move(socket));
    self->accept();
  });
}

void Server::admit(tcp::socket socket) {
  error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) {
    return;
  }
  const auto network = net::network_of(peer.address());
  // Dropping the socket closes it. No reply is sent, because that would cost a handshake with TLS.
  auto share = shares_.take(network);
  if (!share) {
    options_.on_connection_rejected();
    return;
  }
  auto handshake = tls_ ? limiter_.admit(network, Connection::Clock::now())
                        : std::optional(net::Shares::Share());
  if (!handshake) {
    context_.limited("tls_handshakes");
    return;
  }
  // Connections batch their writes already; Nagle's algorithm would only delay them.
  socket.set_option(tcp::no_delay(true), error);
  auto transport =
      tls_ ? net::tls_server_transport(std::move(socket), *tls_, handshakes_->get_executor())
           : net::plain_transport(std::move(socket));
  const auto connection =
      std::make_shared<Connection>(context_, std::move(transport), net::to_string(peer));
  connection->hold({.connection = *std::move(share), .handshake = *std::move(handshake)});
  connections_.insert(connection);
  connection->open([weak = weak_from_this()](const std::shared_ptr<Connection>& on_closed) {
    if (const auto self = weak.lock()) {
      self->connections_.erase(on_closed);
      self->done_if_empty();
    }
  });
}

void Server::check_soon() {
  timer_.expires_after(
      std::min({check_every_max, context_.keep_alive.ping_timeout, context_.request_time}));
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->is_accepting_stopped_) {
      return;
    }
    const auto all = self->connections_;
    for (const auto now = Connection::Clock::now(); const auto& connection : all) {
      connection->check(now);
      connection->expire_requests(now);
    }
    self->check_soon();
  });
}

}  // namespace tenure::grpc
