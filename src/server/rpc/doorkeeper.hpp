#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <tenure/error.hpp>

namespace tenure::server {

/// Accepts connections for gRPC and counts them: gRPC 1.51 has no limit of its own, and without
/// one a flood of connections takes all descriptors, also those of the log. Beyond the limit a
/// connection is closed at once. All on the thread of the loop.
class Doorkeeper : public std::enable_shared_from_this<Doorkeeper> {
 public:
  struct Rules {
    std::size_t connections_max = 10'000;
    std::function<void()> turned_away = [] {};  ///< Called for each that is closed.
  };
  /// Gets an accepted connection and owns it from then on.
  using Admit = std::function<void(int listener, int connection)>;

  Doorkeeper(boost::asio::io_context& loop, Rules rules);

  /// Listens on "host:port"; the port it got. `unavailable` says why not.
  [[nodiscard]] Result<std::uint16_t> listen(const std::string& address);
  /// REQUIRES: listen() succeeded. Begins to let people in.
  void open(Admit admit);
  /// No more from now on. Waits until the loop has seen it.
  void close();

 private:
  void accept();
  void admit(boost::asio::ip::tcp::socket socket);
  /// Counts it until it is closed.
  void follow(int connection);

  boost::asio::io_context& loop_;
  Rules rules_;
  Admit admit_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::size_t connections_ = 0;
};

}  // namespace tenure::server
