#include "server/http/server.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fcntl.h>

#include "server/http/connection.hpp"
#include "sys/log.hpp"

namespace tenure::server::http {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Implementation, separate from the header because Beast takes long to compile. Everything runs on
/// the thread of loop_, except the public functions.
class Server::Core {
 public:
  Core(Store& store, Metrics& metrics, ServerOptions options)
      : options_(std::move(options)),
        metrics_(metrics),
        feed_(store, metrics, loop_->get_executor(),
              {.buffer_max = options_.buffer_events_max, .leader_grace = options_.leader_grace}),
        store_(store),
        lock_handlers_(store, loop_->get_executor(), options_.authorizer),
        cluster_handlers_(store, loop_->get_executor(), options_.reload),
        router_({.store = store,
                 .metrics = metrics,
                 .deadlocks = deadlocks_,
                 .history = history_,
                 .sessions = sessions_,
                 .lock_handlers = lock_handlers_,
                 .cluster_handlers = cluster_handlers_},
                loop_->get_executor(), options_, facts(store)) {
    // Observers must be registered before the store starts; see REQUIRES of Server.
    store.listen(feed_);
    store.listen(deadlocks_);
  }

  ~Core() {
    stop();
    // Handlers left in the loop refer to the other members.
    feed_.close();
    pause_.reset();
    next_sample_.reset();
    acceptor_.reset();
    loop_.reset();
  }

  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  [[nodiscard]] Result<std::uint16_t> start() {
    if (auto prepared = prepare_tls(); !prepared) {
      return std::unexpected(std::move(prepared).error());
    }
    boost::system::error_code error;
    const auto& wanted = options_.address;
    const auto found =
        tcp::resolver(*loop_).resolve(wanted.host, std::to_string(wanted.port), error);
    if (!error) {
      bind(*found.begin(), error);
    }
    if (error) {
      return fail(Errc::unavailable, "HTTP cannot listen on " + wanted.host + ':' +
                                         std::to_string(wanted.port) + ": " + error.message());
    }
    accept();
    collect_sample();
    // Started last: everything above needs no synchronisation.
    thread_ = std::thread([this] { loop_->run(); });
    return acceptor_->local_endpoint().port();
  }

  [[nodiscard]] Result<std::unique_ptr<asio::ssl::context>> context_of(
      const net::ServerTlsFiles& files) const {
    // With users a token can authenticate; without users the client certificate is the only
    // protection.
    return net::server_context(files, {.protocol = net::ServerTlsOptions::Protocol::http1,
                                       .requires_certificate = !options_.authorizer});
  }

  void renew_tls(std::unique_ptr<asio::ssl::context> context) {
    asio::post(*loop_, [this, context = std::move(context)]() mutable {
      tls_ = std::move(context);
      context_.tls = tls_.get();
    });
  }

  void stop() {
    if (!thread_.joinable()) {
      return;
    }
    // First: the server closes the connections below. A handler would take that for a client that
    // disconnected, and remove its wait from the queue.
    lock_handlers_.stop();
    asio::post(*loop_, [this] {
      is_stopping_ = true;
      boost::system::error_code ignored;
      acceptor_->close(ignored);
      pause_->cancel();
      next_sample_->cancel();
      for (const auto& connection : connections_) {
        if (const auto alive = connection.lock()) {
          alive->close();
        }
      }
      // Handlers posted by the store later are dropped.
      asio::post(*loop_, [this] { loop_->stop(); });
    });
    thread_.join();
  }

 private:
  [[nodiscard]] Result<void> prepare_tls() {
    if (!options_.tls) {
      return {};
    }
    auto context = context_of(*options_.tls);
    if (!context) {
      return std::unexpected(std::move(context).error());
    }
    tls_ = *std::move(context);
    context_.tls = tls_.get();
    return {};
  }

  [[nodiscard]] ServerFacts facts(const Store& store) const {
    auto facts = options_.facts;
    facts.identity = store.identity();
    facts.started = std::chrono::steady_clock::now();
    return facts;
  }

  void bind(const tcp::endpoint& endpoint, boost::system::error_code& error) {
    const auto step = [&error](auto&& action) {
      if (!error) {
        action();
      }
    };
    step([&] { acceptor_->open(endpoint.protocol(), error); });
    // A child process must not inherit the port.
    step([&] { ::fcntl(acceptor_->native_handle(), F_SETFD, FD_CLOEXEC); });
    // A restarted server can bind while connections of the old one are in TIME_WAIT.
    step([&] { acceptor_->set_option(tcp::acceptor::reuse_address(true), error); });
    step([&] { acceptor_->bind(endpoint, error); });
    step([&] { acceptor_->listen(asio::socket_base::max_listen_connections, error); });
  }

  void accept() {
    acceptor_->async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (is_stopping_) {
        return;
      }
      if (error) {
        log::warning("http_accept_failed", {{"error", error.message()}});
        accept_later();
        return;
      }
      add_connection(std::move(socket));
      accept();
    });
  }

  /// Typically EMFILE. An immediate retry would only burn CPU.
  void accept_later() {
    pause_->expires_after(std::chrono::milliseconds(100));
    pause_->async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) {
        accept();
      }
    });
  }

  /// Samples the history now and in every interval.
  void collect_sample() {
    store_.peek([this](const Result<View>& view) {
      if (!view) {
        return;
      }
      asio::post(*loop_, [this, status = copy_status(*view)] {
        history_.add(metrics_.totals(), status, std::chrono::steady_clock::now());
      });
    });
    next_sample_->expires_after(History::interval);
    next_sample_->async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled && !is_stopping_) {
        collect_sample();
      }
    });
  }

  void add_connection(tcp::socket socket) {
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    boost::system::error_code ignored;
    // Nagle's algorithm would delay responses without saving packets: each write is complete.
    socket.set_option(tcp::no_delay(true), ignored);
    std::erase_if(connections_, [](const auto& connection) { return connection.expired(); });
    const auto peer = socket.remote_endpoint(ignored);
    auto place = context_.connection_shares.take(net::network_of(peer.address()));
    const bool is_too_many = !place;
    const auto connection =
        std::make_shared<Connection>(std::move(socket), context_, std::move(place));
    connections_.push_back(connection);
    if (is_too_many) {
      metrics_.limit_rejected("http_connections_max");
      log::warning("http_connection_refused", {{"limit", options_.connections_max}});
      admit_overload_connection(connection);
    }
    connection->start();
  }

  /// Registers a connection over the limit. Each has a short time to send a health check, and the
  /// oldest is closed, so that a health check always gets through.
  void admit_overload_connection(const std::shared_ptr<Connection>& connection) {
    std::erase_if(overload_connections_, [](const auto& one) { return one.expired(); });
    if (overload_connections_.size() >= overload_connections_max) {
      if (const auto oldest = overload_connections_.front().lock()) {
        oldest->close();
      }
      overload_connections_.pop_front();
    }
    overload_connections_.push_back(connection);
  }

  /// Each has one second to send its request; 256 of them cover a burst of health checks.
  static constexpr std::size_t overload_connections_max = 256;

  const ServerOptions options_;
  Metrics& metrics_;
  /// All connections, to close them in stop(). Expired entries are removed at each accept.
  std::vector<std::weak_ptr<Connection>> connections_;
  /// Connections over the limit, oldest first.
  std::deque<std::weak_ptr<Connection>> overload_connections_;
  /// In a unique_ptr, as are the timers and the acceptor, because ~Core destroys them in an order
  /// that differs from the order of declaration.
  std::unique_ptr<asio::io_context> loop_ = std::make_unique<asio::io_context>(1);
  EventFeed feed_;
  DeadlockLog deadlocks_;
  History history_;
  LoginSessions sessions_;
  Store& store_;
  LockHandlers lock_handlers_;
  ClusterHandlers cluster_handlers_;
  Router router_;
  /// Context of new connections. A TLS session references its context, so replacing it is safe.
  std::unique_ptr<asio::ssl::context> tls_;
  ConnectionContext context_{
      .options = options_, .router = router_, .feed = feed_, .metrics = metrics_};
  std::optional<tcp::acceptor> acceptor_{*loop_};
  /// Delay after a failed accept.
  std::optional<asio::steady_timer> pause_{*loop_};
  /// Interval of the history.
  std::optional<asio::steady_timer> next_sample_{*loop_};
  /// Loop thread only; handlers that were queued before stop() check it.
  bool is_stopping_ = false;
  std::thread thread_;
};

Server::Server(Store& store, Metrics& metrics, ServerOptions options)
    : core_(std::make_unique<Core>(store, metrics, std::move(options))) {}

Server::~Server() {
  stop();
}

Result<std::uint16_t> Server::start() {
  return core_->start();
}

Result<std::unique_ptr<asio::ssl::context>> Server::context_of(
    const net::ServerTlsFiles& files) const {
  return core_->context_of(files);
}

void Server::renew_tls(std::unique_ptr<asio::ssl::context> context) {
  core_->renew_tls(std::move(context));
}

void Server::stop() {
  core_->stop();
}

}  // namespace tenure::server::http
