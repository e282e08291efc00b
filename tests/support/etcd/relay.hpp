#pragma once

#ifdef TENURE_WITH_SERVER  // which has the server's end of gRPC

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "backends/etcd/etcd.pb.h"
#include "grpc/channel.hpp"
#include "grpc/server.hpp"

namespace tenure::test {

/// Proxy between clients and a real etcd. It delays or drops replies to transactions, so that a
/// test controls when a client receives them, and delays the transactions themselves, which then
/// arrive after the client has abandoned them.
class EtcdRelay {
 public:
  explicit EtcdRelay(std::uint16_t port) {
    boost::asio::ip::tcp::socket socket(loop_);
    socket.connect({boost::asio::ip::address_v4::loopback(), port});
    socket.set_option(boost::asio::ip::tcp::no_delay(true));
    channel_ = std::make_shared<grpc::Channel>(
        loop_, net::plain_transport(std::move(socket)),
        grpc::Channel::Origin{.authority = "127.0.0.1", .is_tls = false});
    for (const char* const path :
         {"/etcdserverpb.Maintenance/Status", "/etcdserverpb.KV/Range", txn_path,
          "/etcdserverpb.Lease/LeaseGrant", "/etcdserverpb.Lease/LeaseRevoke",
          "/etcdserverpb.Lease/LeaseKeepAlive", "/etcdserverpb.Watch/Watch"}) {
      context_.router.add(path, {.open =
                                     [this, path](const grpc::CallInfo& info) {
                                       return std::make_shared<Call>(info, *this, path);
                                     },
                                 .ended = [](grpc::StatusCode) {}});
    }
    std::latch is_ready(1);
    boost::asio::post(loop_, [&] { channel_->open([&] { is_ready.count_down(); }, [] {}); });
    server_ = std::make_shared<grpc::Server>(context_, grpc::ServerOptions{});
    port_ = server_->listen().value();
    server_->open();
    thread_ = std::jthread([this] { loop_.run(); });
    is_ready.wait();
  }
  ~EtcdRelay() {
    server_->stop_accepting();
    server_->stop(std::chrono::milliseconds(0));
    do_there([this] {
      kept_.clear();
      questions_.clear();
      channel_->close();
    });
    work_.reset();
    loop_.stop();
  }
  EtcdRelay(const EtcdRelay&) = delete;
  EtcdRelay& operator=(const EtcdRelay&) = delete;

  [[nodiscard]] std::string url(const std::string& root) const {
    return "etcd://127.0.0.1:" + std::to_string(port_) + '/' + root;
  }

  /// From now on answers to transactions stay here.
  void keep_back() {
    do_there([this] { keeps_back_ = true; });
  }
  /// How many do.
  [[nodiscard]] std::size_t kept() const { return count_; }
  /// The oldest of them goes on.
  void pass_on_one() {
    do_there([this] { pass_on(); });
  }
  /// All do, and those to come.
  void pass_on_all() {
    do_there([this] {
      keeps_back_ = false;
      while (!kept_.empty()) {
        pass_on();
      }
    });
  }
  /// None of them will ever arrive, as when a connection breaks; those to come do.
  void lose_kept() {
    do_there([this] {
      keeps_back_ = false;
      for (auto& one : std::exchange(kept_, {})) {
        one.call->finish({grpc::StatusCode::unavailable, "the connection broke"});
      }
      count_ = 0;
    });
  }
  /// From now on transactions stay here, and etcd hears of none.
  void keep_questions() {
    do_there([this] { keeps_questions_ = true; });
  }
  [[nodiscard]] std::size_t requests() const { return request_count_; }
  /// Fails the pending calls with a broken connection. Later ones pass.
  void lose_questions() {
    do_there([this] {
      keeps_questions_ = false;
      for (const auto& one : questions_) {
        one.call->finish({grpc::StatusCode::unavailable, "the connection broke"});
      }
    });
  }
  /// They arrive after all, and are done when it returns.
  void deliver_late() {
    std::latch is_done(static_cast<std::ptrdiff_t>(request_count_.exchange(0)));
    do_there([&] {
      for (const auto& one : std::exchange(questions_, {})) {
        grpc::UnaryClientCall<backends::etcd::pb::TxnResponse>::start(
            *channel_, txn_path, Call::message_of(one.message),
            [&](const grpc::Status&, const auto&) { is_done.count_down(); });
      }
    });
    is_done.wait();
  }
  /// Messages of etcd's that went over watches.
  [[nodiscard]] std::size_t watch_notifications() const { return watch_notifications_; }

 private:
  static constexpr auto txn_path = "/etcdserverpb.KV/Txn";

  /// A call of a client, and the same one to etcd.
  class Call final : public grpc::Call {
   public:
    Call(const grpc::CallInfo& info, EtcdRelay& relay, std::string_view path)
        : grpc::Call(info), relay_(relay), path_(path) {}

    void answer(std::string_view message) { send(message_of(message)); }
    /// Opaque payload: a message without fields preserves all unknown fields.
    static backends::etcd::pb::StatusRequest message_of(std::string_view bytes) {
      backends::etcd::pb::StatusRequest message;
      message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
      return message;
    }

   private:
    class Upstream final : public grpc::ClientCall {
     public:
      explicit Upstream(std::shared_ptr<Call> call) : call_(std::move(call)) {}

     private:
      void received(std::string_view message) override { call_->on_message(message); }
      void ended(const grpc::Status& status) override { std::exchange(call_, {})->over(status); }

      std::shared_ptr<Call> call_;
    };

    grpc::ClientCall& upstream() {
      if (!upstream_) {
        upstream_ = std::make_shared<Upstream>(std::static_pointer_cast<Call>(shared_from_this()));
        relay_.channel_->begin(std::string(path_), upstream_);
      }
      return *upstream_;
    }
    void received(std::string_view message) override {
      if (path_ == txn_path && relay_.keeps_questions_) {
        is_kept_ = true;
        relay_.questions_.push_back(
            {std::static_pointer_cast<Call>(shared_from_this()), std::string(message)});
        relay_.request_count_ = relay_.questions_.size();
        return;
      }
      upstream().send(message_of(message));
    }
    void half_closed() override {
      if (!is_kept_) {
        upstream().half_close();
      }
    }
    void closed() override {
      if (upstream_) {
        std::exchange(upstream_, {})->cancel();
      }
    }

    void on_message(std::string_view message) {
      if (path_ == txn_path && relay_.keeps_back_) {
        kept_ = message;
        return;
      }
      relay_.watch_notifications_ += path_.ends_with("/Watch") ? 1U : 0U;
      answer(message);
    }
    void over(const grpc::Status& status) {
      if (kept_) {
        relay_.kept_.push_back(
            {std::static_pointer_cast<Call>(shared_from_this()), *std::exchange(kept_, {})});
        relay_.count_ = relay_.kept_.size();
        return;
      }
      finish(status);
    }

    EtcdRelay& relay_;
    const std::string_view path_;
    std::shared_ptr<Upstream> upstream_;
    std::optional<std::string> kept_;
    bool is_kept_ = false;  ///< The question.
  };
  struct Kept {
    std::shared_ptr<Call> call;
    std::string message;
  };

  void pass_on() {
    const auto one = std::move(kept_.front());
    kept_.pop_front();
    count_ = kept_.size();
    one.call->answer(one.message);
    one.call->finish({});
  }
  /// On the loop's thread, and done when it returns.
  template <class Job>
  void do_there(Job job) {
    std::latch is_done(1);
    boost::asio::post(loop_, [&] {
      job();
      is_done.count_down();
    });
    is_done.wait();
  }

  boost::asio::io_context loop_{1};
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_{
      loop_.get_executor()};
  grpc::ServerContext context_{.loop = loop_};
  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<grpc::Server> server_;
  std::uint16_t port_ = 0;
  bool keeps_back_ = false;
  std::deque<Kept> kept_;
  std::atomic<std::size_t> count_ = 0;
  bool keeps_questions_ = false;
  std::deque<Kept> questions_;
  std::atomic<std::size_t> request_count_ = 0;
  std::atomic<std::size_t> watch_notifications_ = 0;
  std::jthread thread_;
};

}  // namespace tenure::test

#endif
