#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/net/listener.hpp"

namespace tenure::test {

/// Fake server that sends the same reply after everything it receives, or nothing.
class FakeRedis {
 public:
  explicit FakeRedis(std::string words) : words_(std::move(words)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }
  FakeRedis(const FakeRedis&) = delete;
  FakeRedis& operator=(const FakeRedis&) = delete;
  ~FakeRedis() {
    thread_.request_stop();
    thread_.join();
  }

  /// All bytes received so far.
  [[nodiscard]] std::string received() {
    const std::scoped_lock lock(mutex_);
    return received_;
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port(); }
  [[nodiscard]] std::string url() const {
    return "redis://127.0.0.1:" + std::to_string(listener_.port());
  }

 private:
  void serve(const std::stop_token& stop) {
    std::vector<int> peers;
    while (!stop.stop_requested()) {
      std::vector<pollfd> ready{{.fd = listener_.socket(), .events = POLLIN, .revents = 0}};
      for (const auto peer : peers) {
        ready.push_back({.fd = peer, .events = POLLIN, .revents = 0});
      }
      ::poll(ready.data(), ready.size(), 10);
      if ((ready[0].revents & POLLIN) != 0) {
        peers.push_back(listener_.accept());
      }
      for (std::size_t at = 1; at < ready.size(); ++at) {
        char bytes[4096];
        if (ready[at].revents == 0) {
          continue;
        }
        if (const auto count = ::read(ready[at].fd, bytes, sizeof bytes); count > 0) {
          {
            const std::scoped_lock lock(mutex_);
            received_.append(bytes, static_cast<std::size_t>(count));
          }
          ::send(ready[at].fd, words_.data(), words_.size(), MSG_NOSIGNAL);
        } else {
          ::close(ready[at].fd);
          std::erase(peers, ready[at].fd);
        }
      }
    }
    for (const auto peer : peers) {
      ::close(peer);
    }
  }

  std::string words_;
  Listener listener_;
  std::mutex mutex_;
  std::string received_;  ///< Guarded by mutex_.
  std::jthread thread_;
};

}  // namespace tenure::test
