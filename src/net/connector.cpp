#include "net/connector.hpp"

#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>

namespace tenure::net {

using boost::system::error_code;

Connector::Connector(boost::asio::io_context& loop, Target target, Done done)
    : target_(std::move(target)),
      done_(std::move(done)),
      resolver_(loop),
      timer_(loop),
      socket_(loop),
      addresses_(target_.addresses) {}

void Connector::cancel() noexcept {
  done_ = nullptr;
  resolver_.cancel();
  timer_.cancel();
  socket_.close();
}

// All handlers own the connector, and with it `done`, which may own the caller. They are destroyed
// with the loop.

void Connector::start() {
  timer_.expires_at(target_.deadline);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) {
      self->fail_with("no answer; is the address right?");
    }
  });
  error_code not_an_address;
  const auto address = boost::asio::ip::make_address(target_.host, not_an_address);
  if (addresses_.empty() && !not_an_address) {
    addresses_ = {{address, target_.port}};
  }
  addresses_.empty() ? resolve() : try_next(boost::asio::error::not_found);
}

void Connector::resolve() {
  resolver_.async_resolve(
      target_.host, std::to_string(target_.port),
      [self = shared_from_this()](const error_code& error, const tcp::resolver::results_type& all) {
        if (self->has_ended()) {
          return;
        }
        if (error) {
          self->fail_with(error.message() + "; is the name right?");
          return;
        }
        self->addresses_.assign(all.begin(), all.end());
        self->try_next(boost::asio::error::not_found);
      });
}

void Connector::try_next(error_code last) {
  while (next_ < addresses_.size()) {
    const auto& address = addresses_[next_++];
    last = socket_.open(address.protocol());
    if (!last) {
      socket_.socket().async_connect(address, [self = shared_from_this()](const error_code& error) {
        if (self->has_ended()) {
          return;
        }
        if (error) {
          self->try_next(error);
          return;
        }
        error_code ignored;
        self->socket_.socket().set_option(tcp::no_delay(true), ignored);
        self->finish(std::move(self->socket_));
      });
      return;
    }
  }
  // Posted, because no address may have been tried yet: `done` must not be called by start().
  boost::asio::post(timer_.get_executor(), [self = shared_from_this(), last] {
    const auto& service = self->target_.service;
    self->fail_with(last.message() + (service.empty() ? "" : "; does " + service + " run there?"));
  });
}

void Connector::fail_with(std::string why) {
  if (!has_ended()) {
    finish(fail(Errc::unavailable, std::move(why)));
  }
}

void Connector::finish(Result<OutgoingSocket> result) {
  auto done = std::exchange(done_, nullptr);
  cancel();
  done(std::move(result));
}

}  // namespace tenure::net
