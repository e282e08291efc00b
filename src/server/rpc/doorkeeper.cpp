#include "server/rpc/doorkeeper.hpp"

#include <chrono>
#include <future>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fcntl.h>

#include "server/units.hpp"

namespace tenure::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Before trying again when even accepting failed, for lack of descriptors for example.
constexpr std::chrono::milliseconds pause{100};

}  // namespace

Doorkeeper::Doorkeeper(asio::io_context& loop, Rules rules)
    : loop_(loop), rules_(std::move(rules)), acceptor_(loop) {}

Result<std::uint16_t> Doorkeeper::listen(const std::string& address) {
  const auto wanted = parse_address(address);
  if (!wanted) {
    return std::unexpected(wanted.error());
  }
  const auto refused = [&](const boost::system::error_code& error) {
    return fail(Errc::unavailable, "cannot listen on " + address + ": " + error.message());
  };
  boost::system::error_code error;
  tcp::resolver resolver(loop_);
  const auto found =
      resolver.resolve(wanted->host, std::to_string(wanted->port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return refused(error);
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) {
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

void Doorkeeper::open(Admit admit) {
  admit_ = std::move(admit);
  asio::post(loop_, [self = shared_from_this()] { self->accept(); });
}

void Doorkeeper::close() {
  std::promise<void> closed;
  asio::post(loop_, [&] {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    admit_ = {};
    closed.set_value();
  });
  closed.get_future().wait();
}

void Doorkeeper::accept() {
  if (!admit_) {
    return;
  }
  acceptor_.async_accept(
      [self = shared_from_this()](const boost::system::error_code& error, tcp::socket socket) {
        if (error == asio::error::operation_aborted || !self->admit_) {
          return;
        }
        if (error) {
          auto timer = std::make_shared<asio::steady_timer>(self->loop_, pause);
          timer->async_wait([self, timer](const boost::system::error_code&) { self->accept(); });
          return;
        }
        self->admit(std::move(socket));
        self->accept();
      });
}

void Doorkeeper::admit(tcp::socket socket) {
  if (connections_ >= rules_.connections_max) {
    rules_.turned_away();
    return;
  }
  boost::system::error_code error;
  socket.set_option(tcp::no_delay(true), error);
  const int connection = socket.release(error);
  if (error) {
    return;
  }
  follow(connection);
  admit_(acceptor_.native_handle(), connection);
}

void Doorkeeper::follow(int connection) {
  // A second descriptor of the same connection. When gRPC has done with it, it shuts it down before
  // it closes its own, and we hear of that.
  const int second = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  if (second < 0) {
    return;
  }
  ++connections_;
  auto descriptor = std::make_shared<asio::posix::stream_descriptor>(loop_, second);
  descriptor->async_wait(asio::posix::stream_descriptor::wait_error,
                         [self = shared_from_this(), descriptor](const boost::system::error_code&) {
                           --self->connections_;
                         });
}

}  // namespace tenure::server
