#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "backends/backend.hpp"
#include "backends/rpc/message_stream.hpp"
#include "grpc/channel.hpp"
#include "net/backoff.hpp"
#include "tenure/v1/watch.pb.h"

namespace tenure::backends::tenured {

/// Watches of a client, multiplexed over one Watch stream.
///
/// After a reconnect each watch resumes at the revision after its last reported event: no gap, no
/// duplicate. When the server closes the stream or defers a watch, the watch is requested again
/// after a backoff delay.
///
/// Not thread safe: all calls run on the event loop's thread.
class Watches {
 public:
  explicit Watches(boost::asio::io_context& loop);
  ~Watches() = default;
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  /// Adds a watch. `begun` is called when the service has registered it, or the watch has ended.
  void add(WatchId id, WatchRequest request, Backend::Sink sink, std::function<void()> begun);
  /// Ends a watch without a callback.
  void remove(WatchId id);
  /// Requests all watches on the new connection.
  void connected(const std::shared_ptr<grpc::Channel>& channel);
  /// Drops the stream; the watches resume on the next connection.
  void disconnected();
  /// Fails all watches with `unavailable`.
  void end();

 private:
  /// State on the current stream.
  enum class Phase : std::uint8_t { idle, requested, active };
  /// One watch of the client.
  struct Watch {
    WatchRequest request;
    std::shared_ptr<Backend::Sink> sink;
    /// First revision not yet reported; 0: the watch has not begun.
    Revision next{};
    std::function<void()> begun{};
    Phase phase = Phase::idle;
  };

  /// Requests a watch on the current stream.
  void begin(WatchId id, Watch& watch);
  /// Requests all watches that are idle.
  void begin_all();
  /// The same after a backoff delay, which grows until the server accepts a watch.
  void begin_all_after_delay();
  /// Handles one message of the server.
  void received(const v1::WatchResponse& response);
  /// Handles a watch that the server ended: resumes it or reports the error.
  void cancelled(WatchId id, const v1::WatchResponse& response);
  /// Handles the end of the stream.
  void ended(const grpc::Status& status);

  /// Watches that have not ended.
  std::map<WatchId, Watch> watches_;
  /// Current channel; null: not connected.
  std::shared_ptr<grpc::Channel> channel_;
  /// Watch stream on the channel; null until the first watch needs it.
  std::shared_ptr<MessageStream<v1::WatchResponse>> stream_;
  boost::asio::steady_timer retry_timer_;
  bool is_retry_due_ = false;
  net::Backoff backoff_;
  std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true);
};

}  // namespace tenure::backends::tenured
