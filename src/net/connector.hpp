#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <tenure/error.hpp>

#include "net/outgoing_socket.hpp"

namespace tenure::net {

/// One attempt to connect to a server: resolves its name and tries each address in order, until one
/// accepts or the deadline passes.
///
/// Guarantees
///   - `done` is called once, on the loop, after start() has returned; or never after cancel().
///   - `done` is called at the deadline at the latest.
///   - A socket that is not passed to `done` is closed.
///
/// A connection has TCP_NODELAY. Not thread safe: all calls are on the thread of the loop.
class Connector : public std::enable_shared_from_this<Connector> {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::move_only_function<void(Result<OutgoingSocket>)>;

  struct Target {
    std::string host{};      ///< Name or address; an IPv6 address without brackets.
    std::uint16_t port = 0;  ///< TCP port.
    std::string service{};   ///< What should listen there, for error texts: "a redis-server".
    Clock::time_point deadline = Clock::time_point::max();  ///< End of the attempt.
    /// Addresses of the server, if they are known: `host` is then not resolved.
    std::vector<boost::asio::ip::tcp::endpoint> addresses{};
  };

  Connector(boost::asio::io_context& loop, Target target, Done done);

  /// Begins the attempt, which keeps itself alive until it has ended. The error is `unavailable`,
  /// with the reason and advice. REQUIRES: called once, and a std::shared_ptr owns the connector.
  void start();
  /// Ends the attempt and destroys `done`. Does nothing if the attempt has ended.
  void cancel() noexcept;

 private:
  using tcp = boost::asio::ip::tcp;

  void resolve();
  /// Tries the next address; `last` is why the address before did not accept.
  void try_next(boost::system::error_code last);
  void finish(Result<OutgoingSocket> result);
  void fail_with(std::string why);
  [[nodiscard]] bool has_ended() const noexcept { return !done_; }

  const Target target_;
  Done done_;  ///< Empty: the attempt has ended.
  tcp::resolver resolver_;
  boost::asio::steady_timer timer_;
  OutgoingSocket socket_;
  std::vector<tcp::endpoint> addresses_;  ///< Addresses in the order in which they are tried.
  std::size_t next_ = 0;                  ///< Index of the address to try next.
};

}  // namespace tenure::net
