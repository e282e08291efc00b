#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

namespace tenure::test {

/// TCP proxy with faults: forwards bytes to a port and back, and can cut or block connections.
class TcpProxy {
 public:
  explicit TcpProxy(std::uint16_t to)
      : to_(to), acceptor_(loop_, {boost::asio::ip::address_v4::loopback(), 0}) {
    accept();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~TcpProxy() {
    loop_.stop();
    thread_.join();
  }
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  /// Ends all connections; new ones can be made.
  void cut() {
    boost::asio::post(loop_, [this] { cut_now(); });
  }
  /// Cuts all connections once after this number of bytes.
  void cut_after(std::size_t bytes) { cut_after_ = bytes; }
  /// Stops or resumes forwarding without closing connections.
  void clog(bool is_clogged) {
    is_clogged_ = is_clogged;
    boost::asio::post(loop_, [this] {
      for (const auto& pipe : pipes_) {
        pump(pipe);
      }
    });
  }
  /// Drops all bytes in the reverse direction until the next cut.
  void deafen() { is_deaf_ = true; }
  [[nodiscard]] std::size_t connections() const { return connections_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  using Socket = boost::asio::ip::tcp::socket;
  struct Pipe {
    std::shared_ptr<Socket> from;
    std::shared_ptr<Socket> to;
    bool is_back = false;
    bool is_busy = false;
    std::array<char, 65536> buffer{};
  };

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Socket socket) {
      if (error) {
        return;
      }
      auto near = std::make_shared<Socket>(std::move(socket));
      auto far = std::make_shared<Socket>(loop_);
      boost::system::error_code refused;
      far->connect({boost::asio::ip::address_v4::loopback(), to_}, refused);
      if (!refused) {
        ++connections_;
        add(near, far, false);
        add(far, near, true);
      }
      accept();
    });
  }
  void add(const std::shared_ptr<Socket>& from, const std::shared_ptr<Socket>& to, bool is_back) {
    auto pipe = std::make_shared<Pipe>();
    pipe->from = from;
    pipe->to = to;
    pipe->is_back = is_back;
    pipes_.push_back(pipe);
    pump(pipe);
  }
  void pump(const std::shared_ptr<Pipe>& pipe) {
    if (is_clogged_ || pipe->is_busy || !pipe->from->is_open()) {
      return;
    }
    pipe->is_busy = true;
    pipe->from->async_read_some(
        boost::asio::buffer(pipe->buffer),
        [this, pipe](boost::system::error_code error, std::size_t size) {
          boost::system::error_code ignored;
          if (!error && !(pipe->is_back && is_deaf_)) {
            boost::asio::write(*pipe->to, boost::asio::buffer(pipe->buffer, size), ignored);
          }
          pipe->is_busy = false;
          if (error || ignored) {
            pipe->from->close(ignored);
            pipe->to->close(ignored);
            return;
          }
          bytes_ += size;
          if (cut_after_ != 0 && bytes_ >= cut_after_) {
            cut_after_ = 0;
            cut_now();
          }
          pump(pipe);
        });
  }
  void cut_now() {
    boost::system::error_code ignored;
    for (const auto& pipe : pipes_) {
      pipe->from->close(ignored);
      pipe->to->close(ignored);
    }
    pipes_.clear();
    is_deaf_ = false;
  }

  const std::uint16_t to_;
  boost::asio::io_context loop_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<std::shared_ptr<Pipe>> pipes_;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<std::size_t> cut_after_ = 0;
  std::atomic<bool> is_clogged_ = false;
  std::atomic<bool> is_deaf_ = false;
  std::thread thread_;
};

}  // namespace tenure::test
