#include "net/outgoing_socket.hpp"

#include <cerrno>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

namespace tenure::net {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// Transport whose descriptor is closed in every child of fork().
class OwnTransport final : public Transport {
 public:
  OwnTransport(std::unique_ptr<Transport> inner, std::unique_ptr<sys::ClosedInChild> descriptor)
      : inner_(std::move(inner)), descriptor_(std::move(descriptor)) {}

  void handshake(Done done) override { inner_->handshake(std::move(done)); }
  void read(Arrived arrived) override { inner_->read(std::move(arrived)); }
  void write(std::span<const char> bytes, Done done) override {
    inner_->write(bytes, std::move(done));
  }
  void write(std::vector<boost::asio::const_buffer> parts, Done done) override {
    inner_->write(std::move(parts), std::move(done));
  }
  void close() override {
    descriptor_.reset();
    inner_->close();
  }
  [[nodiscard]] SSL* tls() noexcept override { return inner_->tls(); }

 private:
  std::unique_ptr<Transport> inner_;
  std::unique_ptr<sys::ClosedInChild>
      descriptor_;  ///< Declared last: reset before the descriptor is closed.
};

}  // namespace

void OutgoingSocket::close() noexcept {
  descriptor_.reset();
  error_code ignored;
  socket_.close(ignored);
}

std::unique_ptr<Transport> OutgoingSocket::into_transport(const std::string& host,
                                                          boost::asio::ssl::context* tls) {
  return wrap(tls != nullptr ? tls_client_transport(host, std::move(socket_), *tls)
                             : plain_transport(std::move(socket_)));
}

std::unique_ptr<Transport> OutgoingSocket::into_transport_to_any_host(
    boost::asio::ssl::context* tls, boost::asio::any_io_executor handshakes) {
  return wrap(tls != nullptr ? tls_client_transport_to_any_host(std::move(socket_), *tls,
                                                                std::move(handshakes))
                             : plain_transport(std::move(socket_)));
}

std::unique_ptr<Transport> OutgoingSocket::wrap(std::unique_ptr<Transport> transport) {
  return std::make_unique<OwnTransport>(std::move(transport), std::move(descriptor_));
}

error_code OutgoingSocket::open(const tcp& protocol) {
  close();
  error_code error;
  descriptor_ = std::make_unique<sys::ClosedInChild>([&] {
    const int number =
        ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
    if (number < 0) {
      error = {errno, boost::system::system_category()};
    }
    return number;
  });
  if (error) {
    return error;
  }
  const int number = descriptor_->descriptor();
  socket_.assign(protocol, number, error);
  if (error) {
    descriptor_.reset();
    ::close(number);
  }
  return error;
}

}  // namespace tenure::net
