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

#include "support/listener.hpp"

namespace tenure::test {

/// A way to a server on loopback, on which what was sent can be kept up: it arrives later, also
/// when the one who sent it has hung up and sends something else by another connection meanwhile.
class SlowRoad {
 public:
  explicit SlowRoad(std::uint16_t to) : to_(to) {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  SlowRoad(const SlowRoad&) = delete;
  SlowRoad& operator=(const SlowRoad&) = delete;
  ~SlowRoad() {
    thread_.request_stop();
    thread_.join();
    for (const auto& trip : trips_) {
      ::close(trip.client);
      ::close(trip.server);
    }
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port(); }

  /// What comes on the connections that there are gets no further.
  void keep_up() {
    const std::scoped_lock lock(mutex_);
    for (auto& trip : trips_) {
      trip.is_kept_up = true;
    }
  }
  /// All that was kept up arrives. How many bytes that were.
  std::size_t let_go() {
    const std::scoped_lock lock(mutex_);
    std::size_t bytes = 0;
    for (auto& trip : trips_) {
      trip.is_kept_up = false;
      bytes += trip.kept.size();
      send(trip.server, trip.kept);
      trip.kept.clear();
    }
    return bytes;
  }

 private:
  struct Trip {
    int client;
    int server;
    bool is_kept_up = false;
    bool has_client = true;
    bool has_server = true;
    std::string kept{};
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
    trips_.push_back({.client = client, .server = server});
  }

  void forward(Trip& trip, const pollfd& from_client, const pollfd& from_server) {
    std::array<char, 16'384> bytes;
    if (from_client.revents != 0) {
      const auto count = ::read(trip.client, bytes.data(), bytes.size());
      trip.has_client = count > 0;
      if (count > 0 && trip.is_kept_up) {
        trip.kept.append(bytes.data(), static_cast<std::size_t>(count));
      } else if (count > 0) {
        send(trip.server, {bytes.data(), static_cast<std::size_t>(count)});
      } else if (!trip.is_kept_up) {
        ::shutdown(trip.server, SHUT_WR);
      }
    }
    if (from_server.revents != 0) {
      const auto count = ::read(trip.server, bytes.data(), bytes.size());
      trip.has_server = count > 0;
      if (count > 0) {
        send(trip.client, {bytes.data(), static_cast<std::size_t>(count)});
      } else {
        ::shutdown(trip.client, SHUT_WR);
      }
    }
  }

  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> ready{{.fd = listener_.socket(), .events = POLLIN, .revents = 0}};
      for (const auto& trip : trips_) {
        ready.push_back({.fd = trip.has_client ? trip.client : -1, .events = POLLIN, .revents = 0});
        ready.push_back({.fd = trip.has_server ? trip.server : -1, .events = POLLIN, .revents = 0});
      }
      ::poll(ready.data(), ready.size(), 10);
      const std::scoped_lock lock(mutex_);
      std::size_t at = 1;
      for (auto& trip : trips_) {
        forward(trip, ready[at], ready[at + 1]);
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
  std::list<Trip> trips_;  ///< Made by the thread only.
  std::jthread thread_;
};

}  // namespace tenure::test
