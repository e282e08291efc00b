#include "support/net/tcp_relay.hpp"

#include <array>
#include <cstddef>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tenure::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

TcpRelay::TcpRelay(std::uint16_t server)
    : server_(server), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  auto address = loopback(0);
  socklen_t size = sizeof address;
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API.
  if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::listen(socket_, 8) != 0) {
    throw std::runtime_error("no port for a link");
  }
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

TcpRelay::~TcpRelay() {
  thread_.request_stop();
  thread_.join();
  close_all();
  ::close(socket_);
}

void TcpRelay::cut() {
  is_cutting_ = true;
  is_cutting_.wait(true);
}

void TcpRelay::close_all() {
  for (const auto& pair : pairs_) {
    ::close(pair.client);
    ::close(pair.server);
  }
  pairs_.clear();
}

void TcpRelay::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (is_cutting_) {
      close_all();
      is_cutting_ = false;
      is_cutting_.notify_all();
    }
    std::vector<pollfd> ready{{.fd = socket_, .events = POLLIN, .revents = 0}};
    for (const auto& pair : pairs_) {
      ready.push_back({.fd = pair.client, .events = POLLIN, .revents = 0});
      // One that is negative is not looked at.
      ready.push_back({.fd = is_holding_ ? -1 : pair.server, .events = POLLIN, .revents = 0});
    }
    ::poll(ready.data(), ready.size(), 5);
    for (std::size_t at = pairs_.size(); at-- > 0;) {
      const auto pair = pairs_[at];
      const bool is_open = (ready[2 * at + 1].revents == 0 || forward(pair.client, pair.server)) &&
                           (ready[2 * at + 2].revents == 0 || forward(pair.server, pair.client));
      if (!is_open) {
        ::close(pair.client);
        ::close(pair.server);
        pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    if (ready[0].revents != 0) {
      accept();
    }
  }
}

void TcpRelay::accept() {
  const int client = ::accept(socket_, nullptr, nullptr);
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(server_);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API.
  if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    pairs_.push_back({.client = client, .server = server});
  } else {
    ::close(client);
    ::close(server);
  }
}

bool TcpRelay::forward(int from, int to) {
  std::array<char, 16'384> bytes;  // NOLINT(*-member-init): written before it is read
  const auto size = ::read(from, bytes.data(), bytes.size());
  if (size <= 0) {
    return false;
  }
  for (ssize_t sent = 0; sent < size;) {
    const auto more =
        ::send(to, bytes.data() + sent, static_cast<std::size_t>(size - sent), MSG_NOSIGNAL);
    if (more <= 0) {
      return false;
    }
    sent += more;
  }
  return true;
}

}  // namespace tenure::test
