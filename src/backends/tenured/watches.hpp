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
#include "grpc/channel.hpp"
#include "net/backoff.hpp"
#include "tenure/v1/watch.pb.h"

namespace tenure::backends::tenured {

/// The watches of a client, over one Watch stream. After a lost connection each goes on with the
/// revision after the last one it told: no gap, no duplicate. So it does when the server ends the
/// stream alone, or puts off a watch: a little later. All on the loop's thread.
class Watches {
 public:
  explicit Watches(boost::asio::io_context& loop);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  /// `begun` is called when the service watches, or it is over.
  void add(WatchId id, WatchRequest request, Backend::Sink sink, std::function<void()> begun);
  void remove(WatchId id);
  void connected(const std::shared_ptr<grpc::Channel>& channel);
  void disconnected();
  /// All sinks hear `unavailable`.
  void end();

 private:
  class Stream;
  enum class Phase : std::uint8_t { idle, requested, active };  ///< On the present stream.
  struct Watch {
    WatchRequest request;
    std::shared_ptr<Backend::Sink> sink;
    Revision next{};  ///< The first revision that was not told; 0: it has not begun.
    std::function<void()> begun{};
    Phase phase = Phase::idle;
  };

  void begin(WatchId id, Watch& watch);
  /// Those that are not begun.
  void begin_all();
  /// The same after a pause, which grows until the server watches again.
  void begin_all_after_delay();
  void received(const v1::WatchResponse& response);
  void cancelled(WatchId id, const v1::WatchResponse& response);
  void ended(const grpc::Status& status);

  std::map<WatchId, Watch> watches_;
  std::shared_ptr<grpc::Channel> channel_;
  std::shared_ptr<Stream> stream_;
  boost::asio::steady_timer retry_timer_;
  bool is_retry_due_ = false;
  net::Backoff backoff_;
  std::shared_ptr<const bool> life_ = std::make_shared<const bool>(true);
};

}  // namespace tenure::backends::tenured
