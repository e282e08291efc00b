#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "server/peers/peer_transport.hpp"
#include "support/raft/folder.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {

/// PeerTransport of one member on a loop of its own; records received messages and log events.
class TestPeer {
 public:
  using Message = server::raft::Message;
  struct Received {
    server::raft::MemberId sender{};
    Message message;
  };

  [[nodiscard]] static server::peers::PeerOptions options(std::uint64_t member) {
    server::peers::PeerOptions options;
    options.self.cluster = server::raft::ClusterId{77};
    options.self.member = server::raft::MemberId{member};
    return options;
  }

  explicit TestPeer(server::peers::PeerOptions options, std::uint16_t port = 0) {
    options.report = reports.report();
    auto listening = server::peers::ListeningSocket::bind("127.0.0.1", port);
    if (options.self.address.empty()) {
      options.self.address = "127.0.0.1:" + std::to_string(listening->port());
    }
    auto made = server::peers::PeerTransport::make(std::move(options), *std::move(listening));
    transport_ = *std::move(made);
    thread_ = std::thread([this] { loop_.run(); });
    on_loop([this] {
      transport_->start(loop_, [this](server::raft::MemberId sender, Message message) {
        if (when_received) {
          when_received(message);
        }
        const std::lock_guard guard(mutex_);
        received_.push_back({sender, std::move(message)});
      });
    });
  }
  ~TestPeer() {
    on_loop([this] { transport_->stop(); });
    work_.reset();
    thread_.join();
  }
  TestPeer(const TestPeer&) = delete;
  TestPeer& operator=(const TestPeer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return transport_->port(); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }

  /// REQUIRES: on the loop.
  [[nodiscard]] server::peers::PeerTransport& transport() { return *transport_; }
  /// REQUIRES: on the loop.
  void stop_here() { transport_->stop(); }

  template <class Call>
  std::invoke_result_t<Call> on_loop(Call call) {
    std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
    auto done = task.get_future();
    boost::asio::post(loop_, [&task] { task(); });
    return done.get();
  }
  void send(std::uint64_t peer, Message message) {
    on_loop([&] { transport_->send(server::raft::MemberId{peer}, std::move(message)); });
  }
  /// Members by id and where they are.
  void set_members(const std::vector<std::pair<std::uint64_t, std::string>>& members) {
    std::vector<server::raft::Member> all;
    for (const auto& [id, address] : members) {
      all.push_back({.id = server::raft::MemberId{id}, .peer = address});
    }
    on_loop([&] { transport_->set_members(all); });
  }
  [[nodiscard]] server::PeerTraffic counts(std::uint64_t peer) {
    for (const auto& one : on_loop([this] { return transport_->counts(); })) {
      if (one.peer == peer) {
        return one;
      }
    }
    return {};
  }
  [[nodiscard]] bool is_connected_to(std::uint64_t peer) { return counts(peer).is_connected; }
  [[nodiscard]] std::vector<Received> received() const {
    const std::lock_guard guard(mutex_);
    return received_;
  }
  [[nodiscard]] std::size_t received_count() const {
    const std::lock_guard guard(mutex_);
    return received_.size();
  }
  [[nodiscard]] bool reports_about(const std::string& words) const {
    return reports.all().find(words) != std::string::npos;
  }

  Reports reports;
  std::function<void(const Message&)> when_received;  ///< On the loop. Set it before anything.

 private:
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      loop_.get_executor()};
  std::unique_ptr<server::peers::PeerTransport> transport_;
  mutable std::mutex mutex_;
  std::vector<Received> received_;
  std::thread thread_;
};

}  // namespace tenure::test
