#include "server/process/notify.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <boost/asio/local/datagram_protocol.hpp>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tenure::server {
namespace {

using boost::asio::local::datagram_protocol;

/// A notification socket, as systemd provides it.
class Systemd : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove(path_);
    socket_.open();
    socket_.bind(datagram_protocol::endpoint(path_));
    ::setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("NOTIFY_SOCKET");
    ::unsetenv("WATCHDOG_USEC");
    std::filesystem::remove(path_);
  }
  std::string receive() {
    std::array<char, 512> text{};
    return {text.data(), socket_.receive(boost::asio::buffer(text))};
  }

  const std::string path_ = testing::TempDir() + "tenure_notify_" + std::to_string(::getpid());
  boost::asio::io_context listening_;
  datagram_protocol::socket socket_{listening_};
  boost::asio::io_context loop_;
};

TEST_F(Systemd, systemd_is_notified_of_readiness_and_stop) {
  ServiceNotifier notifier(loop_);

  notifier.ready("leads\nREADY=0");
  EXPECT_EQ(receive(), "READY=1\nSTATUS=leads READY=0");
  notifier.status("follows");
  EXPECT_EQ(receive(), "STATUS=follows");
  notifier.stopping();
  EXPECT_EQ(receive(), "STOPPING=1");
}

TEST_F(Systemd, the_watchdog_is_notified_only_while_the_loop_runs) {
  ::setenv("WATCHDOG_USEC", "20000", 1);
  ServiceNotifier notifier(loop_);
  notifier.ready("");
  EXPECT_EQ(receive(), "READY=1\nSTATUS=");
  EXPECT_EQ(socket_.available(), 0U);

  loop_.run_one();
  EXPECT_EQ(receive(), "WATCHDOG=1");
  loop_.run_one();
  EXPECT_EQ(receive(), "WATCHDOG=1");
}

TEST(ServiceNotifier, without_systemd_nothing_happens) {
  ::unsetenv("NOTIFY_SOCKET");
  boost::asio::io_context loop;
  ServiceNotifier notifier(loop);

  notifier.ready("leads");
  notifier.stopping();

  EXPECT_EQ(loop.poll(), 0U);
}

}  // namespace
}  // namespace tenure::server
