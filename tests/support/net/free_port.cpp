#include "support/net/free_port.hpp"

#include <mutex>
#include <random>
#include <set>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tenure::test {

// Below those that the system gives to connections: what is free now stays free until a server has
// it. None is given twice: two members of a cluster would have one.
std::uint16_t free_port() {
  static std::mutex mutex;
  static std::mt19937 random(std::random_device{}());
  static std::set<std::uint16_t> given;
  const std::lock_guard lock(mutex);
  std::uniform_int_distribution<std::uint16_t> any(10'240, 32'000);
  for (int tries = 0; tries < 1'000; ++tries) {
    const auto port = any(random);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the sockets API.
    const bool is_free = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (is_free && given.insert(port).second) {
      return port;
    }
  }
  throw std::runtime_error("no free port");
}

}  // namespace tenure::test
