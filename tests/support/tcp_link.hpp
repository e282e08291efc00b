#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace tenure::test {

/// A way to a server of the loopback that can be made slow: what the server answers is kept back
/// while the test says so, though it was asked there and done. It can be cut, too.
class TcpLink {
 public:
  explicit TcpLink(std::uint16_t server);
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;
  ~TcpLink();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  void hold_answers() { is_holding_ = true; }
  void pass_answers() { is_holding_ = false; }
  /// Ends all connections there are, with what was kept back; new ones can be made. Returns when it
  /// is done.
  void cut();

 private:
  struct Pair {
    int client = -1;
    int server = -1;
  };

  void run(const std::stop_token& stop);
  void accept();
  void close_all();
  /// False: that end is closed.
  [[nodiscard]] static bool carry(int from, int to);

  const std::uint16_t server_;
  int socket_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> is_holding_ = false;
  std::atomic<bool> is_cutting_ = false;
  std::vector<Pair> pairs_;
  std::jthread thread_;
};

}  // namespace tenure::test
