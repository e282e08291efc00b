#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/thread_pool.hpp>

namespace tenure::server::peers {

/// Background thread that computes TLS handshakes for an event loop, one step at a time, so that
/// their public-key operations do not delay the handlers of the loop.
///
///     auto executor = asio::use_service<HandshakeThread>(loop).executor();
///
/// An Asio service, owned by the loop: the handlers of an abandoned handshake stay queued in the
/// loop and refer to this thread until the loop is destroyed.
/// REQUIRES: the loop has the services of its sockets and timers already. Asio shuts services down
/// in the reverse order of their creation, so this thread ends before those services.
class HandshakeThread final : public boost::asio::execution_context::service {
 public:
  using key_type = HandshakeThread;  // NOLINT(readability-identifier-naming): Asio's.
  inline static boost::asio::execution_context::id id;

  explicit HandshakeThread(boost::asio::execution_context& loop) : service(loop) {}

  /// Runs one handler at a time, in the order of submission. Thread safe.
  [[nodiscard]] boost::asio::any_io_executor executor() { return thread_.get_executor(); }

 private:
  /// Called by Asio when the loop is destroyed. Joins the thread, so that no handler runs
  /// afterwards.
  void shutdown() override {
    thread_.stop();
    thread_.join();
  }

  boost::asio::thread_pool thread_{1};
};

}  // namespace tenure::server::peers
