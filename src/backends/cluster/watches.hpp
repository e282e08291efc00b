#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "backends/backend.hpp"
#include "h2/channel.hpp"
#include "tenure/v1/watch.pb.h"

namespace tenure::backends::cluster {

/// The watches of a client, over one Watch stream. After a lost connection each goes on with the
/// revision after the last one it told: no gap, no duplicate. All on the loop's thread.
class Watches {
 public:
  Watches();
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  /// `begun` is called when the service watches, or it is over.
  void add(WatchId id, WatchRequest request, Backend::Sink sink, std::function<void()> begun);
  void remove(WatchId id);
  void connected(const std::shared_ptr<h2::Channel>& channel);
  void disconnected();
  /// All sinks hear `unavailable`.
  void end();

 private:
  class Stream;
  struct Watch {
    WatchRequest request;
    std::shared_ptr<Backend::Sink> sink;
    Revision next{};  ///< The first revision that was not told; 0: it has not begun.
    std::function<void()> begun{};
  };

  void begin(WatchId id, const Watch& watch);
  void received(const v1::WatchResponse& response);
  void cancelled(WatchId id, const v1::WatchResponse& response);
  void ended(const h2::Status& status);

  std::map<WatchId, Watch> watches_;
  std::shared_ptr<h2::Channel> channel_;
  std::shared_ptr<Stream> stream_;
};

}  // namespace tenure::backends::cluster
