#include "backends/zookeeper/connect_check.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tenure::backends::zookeeper {
namespace {

using Clock = std::chrono::steady_clock;

/// RAII socket descriptor.
class Socket {
 public:
  explicit Socket(const addrinfo& where)
      : number_(::socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket() {
    if (number_ >= 0) {
      ::close(number_);
    }
  }
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

/// Non-blocking connection attempts to all servers.
class ConnectAttempts {
 public:
  void begin(const Endpoint& endpoint) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const auto port = std::to_string(endpoint.port);
    if (const int code = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &found);
        code != 0) {
      add_error(endpoint, ::gai_strerror(code));
      return;
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
    for (const auto* one = found; one != nullptr; one = one->ai_next) {
      Socket socket(*one);
      if (::connect(socket.number(), one->ai_addr, one->ai_addrlen) == 0) {
        is_connected_ = true;
      } else if (errno != EINPROGRESS) {
        add_error(endpoint, std::generic_category().message(errno));
      } else {
        pending_.emplace_back(std::move(socket), endpoint);
      }
    }
  }

  Result<void> wait(Clock::time_point deadline) {
    while (!is_connected_ && !pending_.empty()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left <= std::chrono::milliseconds::zero()) {
        add_error(pending_.front().second, "no answer");
        break;
      }
      poll_once(left);
    }
    return is_connected_ ? Result<void>() : fail(Errc::unavailable, errors_);
  }

 private:
  void poll_once(std::chrono::milliseconds longest) {
    std::vector<pollfd> watched;
    watched.reserve(pending_.size());
    for (const auto& [socket, endpoint] : pending_) {
      watched.push_back({.fd = socket.number(), .events = POLLOUT, .revents = 0});
    }
    ::poll(watched.data(), watched.size(), static_cast<int>(longest.count()));
    // Backwards, because a finished attempt is replaced by the last one.
    for (std::size_t at = watched.size(); at-- > 0;) {
      if (watched[at].revents == 0) {
        continue;
      }
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(watched[at].fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) {
        is_connected_ = true;
      } else {
        add_error(pending_[at].second, std::generic_category().message(error));
      }
      std::swap(pending_[at], pending_.back());
      pending_.pop_back();
    }
  }
  void add_error(const Endpoint& endpoint, const std::string& why) {
    errors_ += (errors_.empty() ? "" : "; ") + name_of(endpoint) + ": " + why;
  }

  bool is_connected_ = false;
  std::vector<std::pair<Socket, Endpoint>> pending_;
  std::string errors_;
};

}  // namespace

Result<void> check_connectivity(const Address& address, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  ConnectAttempts attempts;
  for (const auto& endpoint : address.endpoints) {
    attempts.begin(endpoint);
  }
  auto answer = attempts.wait(deadline);
  if (!answer) {
    answer.error().detail += "; is ZooKeeper running there?";
  }
  return answer;
}

}  // namespace tenure::backends::zookeeper
