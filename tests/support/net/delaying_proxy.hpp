#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/net/listener.hpp"

namespace tenure::test {

/// TCP proxy to a server on loopback that can hold back what clients send. Held bytes arrive after
/// release(), even if the client has closed the connection and uses another one. Thread safe.
class DelayingProxy {
 public:
  explicit DelayingProxy(std::uint16_t to) : to_(to) {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  DelayingProxy(const DelayingProxy&) = delete;
  DelayingProxy& operator=(const DelayingProxy&) = delete;
  ~DelayingProxy() {
    thread_.request_stop();
    thread_.join();
    for (const auto& connection : connections_) {
      ::close(connection.client);
      ::close(connection.server);
    }
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port(); }

  /// Holds back all bytes that clients send on the existing connections.
  void hold() {
    const std::scoped_lock lock(mutex_);
    for (auto& connection : connections_) {
      connection.is_held = true;
    }
  }
  /// Forwards the held bytes and returns their number.
  std::size_t release() {
    const std::scoped_lock lock(mutex_);
    std::size_t bytes = 0;
    for (auto& connection : connections_) {
      connection.is_held = false;
      bytes += connection.held.size();
      send(connection.server, connection.held);
      connection.held.clear();
    }
    return bytes;
  }

 private:
  struct Connection {
    int client;
    int server;
    bool is_held = false;
    bool has_client = true;
    bool has_server = true;
    std::string held{};
  };

  static void send(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) {
        return;
      }
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void accept_one() {
    const int client = listener_.accept();
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(to_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API.
    ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    connections_.push_back({.client = client, .server = server});
  }

  void forward(Connection& connection, const pollfd& from_client, const pollfd& from_server) {
    std::array<char, 16'384> bytes;
    if (from_client.revents != 0) {
      const auto count = ::read(connection.client, bytes.data(), bytes.size());
      connection.has_client = count > 0;
      if (count > 0 && connection.is_held) {
        connection.held.append(bytes.data(), static_cast<std::size_t>(count));
      } else if (count > 0) {
        send(connection.server, {bytes.data(), static_cast<std::size_t>(count)});
      } else if (!connection.is_held) {
        ::shutdown(connection.server, SHUT_WR);
      }
    }
    if (from_server.revents != 0) {
      const auto count = ::read(connection.server, bytes.data(), bytes.size());
      connection.has_server = count > 0;
      if (count > 0) {
        send(connection.client, {bytes.data(), static_cast<std::size_t>(count)});
      } else {
        ::shutdown(connection.client, SHUT_WR);
      }
    }
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> ready{{.fd = listener_.socket(), .events = POLLIN, .revents = 0}};
      for (const auto& connection : connections_) {
        ready.push_back(
            {.fd = connection.has_client ? connection.client : -1, .events = POLLIN, .revents = 0});
        ready.push_back(
            {.fd = connection.has_server ? connection.server : -1, .events = POLLIN, .revents = 0});
      }
      ::poll(ready.data(), ready.size(), 10);
      const std::scoped_lock lock(mutex_);
      std::size_t at = 1;
      for (auto& connection : connections_) {
        forward(connection, ready[at], ready[at + 1]);
        at += 2;
      }
      if ((ready[0].revents & POLLIN) != 0) {
        accept_one();
      }
    }
  }

  const std::uint16_t to_;
  Listener listener_;
  std::mutex mutex_;
  std::list<Connection> connections_;  ///< Made by the thread only.
  std::jthread thread_;
};

}  // namespace tenure::test
