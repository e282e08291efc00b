#include "backends/net/outgoing.hpp"

#include <cerrno>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/fork.hpp"

namespace tenure::backends {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

/// Tries one address after the other.
class Attempts : public std::enable_shared_from_this<Attempts> {
 public:
  using Done = std::move_only_function<void(const error_code&)>;

  Attempts(std::shared_ptr<tcp::socket> socket, tcp::resolver::results_type found, Done done)
      : socket_(std::move(socket)),
        found_(std::move(found)),
        next_(found_.begin()),
        done_(std::move(done)) {}

  void try_next(error_code last) {
    for (; next_ != found_.end(); ++next_) {
      const auto endpoint = next_->endpoint();
      last = open(endpoint.protocol());
      if (!last) {
        ++next_;
        socket_->async_connect(endpoint, [self = shared_from_this()](const error_code& error) {
          const bool is_over = !error || error == boost::asio::error::operation_aborted;
          is_over ? self->done_(error) : self->try_next(error);
        });
        return;
      }
    }
    boost::asio::post(socket_->get_executor(),
                      [self = shared_from_this(), last] { self->done_(last); });
  }

 private:
  [[nodiscard]] error_code open(const tcp& protocol) {
    error_code error;
    socket_->close(error);
    const int number =
        ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
    if (number < 0) {
      return {errno, boost::system::system_category()};
    }
    socket_->assign(protocol, number, error);
    if (error) {
      ::close(number);
    }
    return error;
  }

  const std::shared_ptr<tcp::socket> socket_;
  const tcp::resolver::results_type found_;
  tcp::resolver::results_type::const_iterator next_;
  Done done_;
};

class OwnTransport final : public h2::Transport {
 public:
  OwnTransport(std::unique_ptr<h2::Transport> inner, int socket)
      : inner_(std::move(inner)), socket_(socket) {}

  void greet(Done done) override { inner_->greet(std::move(done)); }
  void read(Arrived arrived) override { inner_->read(std::move(arrived)); }
  void write(std::span<const char> bytes, Done done) override {
    inner_->write(bytes, std::move(done));
  }
  void write(std::vector<boost::asio::const_buffer> parts, Done done) override {
    inner_->write(std::move(parts), std::move(done));
  }
  void close() override {
    socket_.reset();
    inner_->close();
  }
  [[nodiscard]] SSL* tls() noexcept override { return inner_->tls(); }

 private:
  std::unique_ptr<h2::Transport> inner_;
  sys::ClosedInChild socket_;  ///< Last: forgets the descriptor before it is closed.
};

}  // namespace

void connect_to_first(std::shared_ptr<tcp::socket> socket, tcp::resolver::results_type found,
                      std::move_only_function<void(const error_code&)> done) {
  std::make_shared<Attempts>(std::move(socket), std::move(found), std::move(done))
      ->try_next(boost::asio::error::not_found);
}

std::unique_ptr<h2::Transport> closed_in_child(std::unique_ptr<h2::Transport> transport,
                                               int socket) {
  return std::make_unique<OwnTransport>(std::move(transport), socket);
}

}  // namespace tenure::backends
