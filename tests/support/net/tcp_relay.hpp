#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace tenure::test {

/// TCP proxy to a server on loopback that can hold back the replies of the server, although it has
/// executed the commands, and that can cut connections. It runs on its own thread. Thread safe.
class TcpRelay {
 public:
  explicit TcpRelay(std::uint16_t server);
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;
  ~TcpRelay();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  void hold_replies() { is_holding_ = true; }
  void pass_replies() { is_holding_ = false; }
  /// Closes all connections and drops held replies; new connections are accepted. Returns when all
  /// are closed.
  void cut();

 private:
  struct Pair {
    int client = -1;
    int server = -1;
  };

  void run(const std::stop_token& stop);
  void accept();
  void close_all();
  /// Returns false if that end is closed.
  [[nodiscard]] static bool forward(int from, int to);

  const std::uint16_t server_;
  int socket_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> is_holding_ = false;
  std::atomic<bool> is_cutting_ = false;
  std::vector<Pair> pairs_;
  std::jthread thread_;
};

}  // namespace tenure::test
