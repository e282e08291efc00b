#include "cli/text_exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tenure::cli {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

constexpr std::size_t reply_bytes_max = std::size_t{1} << 20U;

/// Nonblocking TCP socket.
class Socket {
 public:
  explicit Socket(const addrinfo& address)
      : file_(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (file_ >= 0) {
      close(file_);
    }
  }

  [[nodiscard]] int file() const noexcept { return file_; }
  /// Waits for one of the events. False at the deadline.
  [[nodiscard]] bool wait_for(short events, Deadline deadline) const {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waker{.fd = file_, .events = events, .revents = 0};
    return left.count() > 0 && poll(&waker, 1, static_cast<int>(left.count())) == 1;
  }

 private:
  int file_;
};

/// Connects to the first address that accepts.
Result<Socket> connected(const backends::Endpoint& server, Deadline deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure =
      getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &hints, &found);
  if (failure != 0) {
    return fail(Errc::unavailable, name_of(server) + ": " + gai_strerror(failure));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  int why = ETIMEDOUT;
  for (const auto* address = found; address != nullptr; address = address->ai_next) {
    Socket socket(*address);
    socklen_t bytes = sizeof(why);
    why = ::connect(socket.file(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (why == EINPROGRESS && socket.wait_for(POLLOUT, deadline)) {
      getsockopt(socket.file(), SOL_SOCKET, SO_ERROR, &why, &bytes);
    }
    if (why == 0) {
      return socket;
    }
  }
  return fail(Errc::unavailable, name_of(server) + ": " + std::strerror(why));
}

}  // namespace

Result<std::string> exchange_text(const backends::Endpoint& server, std::string_view request,
                                  std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto socket = connected(server, deadline);
  if (!socket) {
    return std::unexpected(socket.error());
  }
  while (!request.empty() && socket->wait_for(POLLOUT, deadline)) {
    const auto sent = send(socket->file(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      break;
    }
    request.remove_prefix(static_cast<std::size_t>(sent));
  }
  std::string reply;
  std::array<char, 16384> part{};
  while (reply.size() < reply_bytes_max && socket->wait_for(POLLIN, deadline)) {
    const auto count = recv(socket->file(), part.data(), part.size(), 0);
    if (count <= 0) {
      break;
    }
    reply.append(part.data(), static_cast<std::size_t>(count));
  }
  return reply.empty()
             ? Result<std::string>(fail(Errc::unavailable, name_of(server) + ": no reply"))
             : reply;
}

Result<std::string> query_http(const backends::Endpoint& server, const HttpQuery& query,
                               std::chrono::milliseconds timeout) {
  const std::string method = query.body.empty() ? "GET " : "POST ";
  auto request = method + std::string(query.path) + " HTTP/1.0\r\nHost: " + name_of(server) +
                 "\r\nConnection: close\r\n";
  if (!query.body.empty()) {
    request +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(query.body.size()) +
        "\r\n";
  }
  auto reply = exchange_text(server, request + "\r\n" + std::string(query.body), timeout);
  if (!reply) {
    return reply;
  }
  const auto head = std::string_view(*reply).substr(0, reply->find("\r\n"));
  const auto body = reply->find("\r\n\r\n");
  if (!head.starts_with("HTTP/1.") || head.find(" 200") == std::string_view::npos ||
      body == std::string::npos) {
    return fail(Errc::unavailable, name_of(server) + ": " + std::string(head));
  }
  return reply->substr(body + 4);
}

}  // namespace tenure::cli
