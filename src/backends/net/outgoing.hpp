#pragma once

#include <functional>
#include <memory>

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include "h2/transport.hpp"

// Connections of a client to servers, which belong to this process alone: neither a program that it
// executes nor a child of fork() has them.

namespace tenure::backends {

/// Connects `socket` to the first of `found` that accepts. `done` is called on the loop of the
/// socket, and not before this returns; closing the socket ends it with `operation_aborted`.
/// Asio's own async_connect() opens sockets without SOCK_CLOEXEC.
void connect_to_first(std::shared_ptr<boost::asio::ip::tcp::socket> socket,
                      boost::asio::ip::tcp::resolver::results_type found,
                      std::move_only_function<void(const boost::system::error_code&)> done);

/// The same transport, whose descriptor `socket` is closed in every child of fork().
[[nodiscard]] std::unique_ptr<h2::Transport> closed_in_child(
    std::unique_ptr<h2::Transport> transport, int socket);

}  // namespace tenure::backends
