#pragma once

#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <sys/socket.h>

#include "support/net/listener.hpp"

namespace tenure::test {

/// Server on loopback that accepts no connection and whose queue of connections is full: a client
/// that connects gets neither an answer nor an error.
class FullServer {
 public:
  FullServer() {
    ::listen(listener_.socket(), 0);
    for (auto& socket : queued_) {
      socket.open(boost::asio::ip::tcp::v4());
      socket.native_non_blocking(true);
      // The first is connected; of the rest the kernel drops the SYN. Asio's connect() would wait.
      const auto address = endpoint();
      static_cast<void>(::connect(socket.native_handle(), address.data(),
                                  static_cast<socklen_t>(address.size())));
    }
  }

  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const {
    return {boost::asio::ip::address_v4::loopback(), listener_.port()};
  }

 private:
  Listener listener_;
  boost::asio::io_context loop_;
  std::vector<boost::asio::ip::tcp::socket> queued_ = [this] {
    std::vector<boost::asio::ip::tcp::socket> made;
    for (int i = 0; i < 3; ++i) {
      made.emplace_back(loop_);
    }
    return made;
  }();
};

}  // namespace tenure::test
