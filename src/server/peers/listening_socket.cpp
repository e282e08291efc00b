#include "server/peers/listening_socket.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fcntl.h>
#include <unistd.h>

namespace tenure::server::peers {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

Result<ListeningSocket> ListeningSocket::bind(const std::string& host, std::uint16_t port) {
  const auto refused = [&](const error_code& error) {
    return fail(Errc::unavailable,
                "cannot listen on " + host + ":" + std::to_string(port) + ": " + error.message());
  };
  // Only synchronous functions are called on it; the loop of the server does not exist yet.
  asio::io_context unused_loop;
  error_code error;
  tcp::resolver resolver(unused_loop);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return refused(error);
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(unused_loop);
  acceptor.open(endpoint.protocol(), error);
  if (!error) {
    // A child process must not keep the port open.
    ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    // A restart must not wait until the connections of the last process leave TIME_WAIT.
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor.bind(endpoint, error);
  }
  if (!error) {
    acceptor.listen(asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    return refused(error);
  }
  const auto bound = acceptor.local_endpoint(error).port();
  const int descriptor = acceptor.release(error);
  if (error) {
    return refused(error);
  }
  return ListeningSocket(descriptor, bound, endpoint.address().is_v6());
}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

}  // namespace tenure::server::peers
