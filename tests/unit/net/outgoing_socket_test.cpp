
#include "net/outgoing_socket.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/net/full_server.hpp"
#include "support/net/listener.hpp"

namespace tenure::test {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using net::OutgoingSocket;

/// In a child of fork().
bool is_open_in_child(int descriptor) {
  const auto child = ::fork();
  if (child == 0) {
    ::_exit(::fcntl(descriptor, F_GETFD) >= 0 ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) != 0;
}

// A child that keeps it completes the connection, and keeps it open when its parent is gone.
TEST(OutgoingSocket, a_child_of_fork_does_not_have_a_socket_that_is_being_connected) {
  const FullServer server;
  boost::asio::io_context loop;
  OutgoingSocket socket(loop);
  ASSERT_FALSE(socket.open(tcp::v4()));
  error_code end;
  socket.socket().async_connect(server.endpoint(), [&](const error_code& error) { end = error; });
  loop.poll();
  ASSERT_FALSE(end) << "it is being connected";
  const int descriptor = socket.socket().native_handle();
  ASSERT_GE(descriptor, 0);

  EXPECT_FALSE(is_open_in_child(descriptor));

  EXPECT_GE(::fcntl(descriptor, F_GETFD), 0) << "the parent has it";
  socket.close();
  loop.restart();
  loop.run();
  EXPECT_EQ(end, boost::asio::error::operation_aborted);
}

TEST(OutgoingSocket, a_descriptor_is_not_closed_in_a_child_after_its_socket_was_closed) {
  boost::asio::io_context loop;
  OutgoingSocket socket(loop);
  ASSERT_FALSE(socket.open(tcp::v4()));
  const int descriptor = socket.socket().native_handle();
  socket.close();

  const int another = ::dup2(STDERR_FILENO, descriptor);

  EXPECT_TRUE(is_open_in_child(another));
  ::close(another);
}

TEST(OutgoingSocket, an_executed_program_does_not_inherit_the_socket) {
  boost::asio::io_context loop;
  OutgoingSocket socket(loop);
  ASSERT_FALSE(socket.open(tcp::v4()));

  EXPECT_EQ(::fcntl(socket.socket().native_handle(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(OutgoingSocket, a_child_of_fork_does_not_have_the_socket_of_a_transport) {
  const Listener server;
  boost::asio::io_context loop;
  OutgoingSocket socket(loop);
  ASSERT_FALSE(socket.open(tcp::v4()));
  socket.socket().connect({boost::asio::ip::address_v4::loopback(), server.port()});
  const int descriptor = socket.socket().native_handle();

  const auto transport = socket.into_transport("server", nullptr);

  EXPECT_FALSE(is_open_in_child(descriptor));
  EXPECT_GE(::fcntl(descriptor, F_GETFD), 0) << "the parent has it";
  transport->close();
}

}  // namespace
}  // namespace tenure::test
