#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "backends/redis/command.hpp"

namespace tenure::backends::redis {

/// Predicate on keys: the locks that an event affects; null: all locks.
using KeyFilter = std::function<bool(std::string_view key)>;

/// Sends each command to the server that currently owns its key, and delivers the published
/// messages of all servers in use. Knows nothing about locks.
///
/// Implementations: StandaloneRouter (one server, or the primary that Sentinels name) and
/// ClusterRouter. Runs on the loop's thread; callbacks are called there, too.
class CommandRouter {
 public:
  /// Events for the owner of the router.
  struct Callbacks {
    /// Connected or reconnected to the servers of these keys. Messages that were published in
    /// between are lost.
    std::function<void(const KeyFilter&)> ready;
    /// All servers in use are connected again after a failure. They may be other servers than
    /// before, which may have lost the latest writes.
    std::function<void()> recovered;
    /// A connection was lost, or could not be made.
    std::function<void(const Error&)> disconnected;
    /// No command is unanswered.
    std::function<void()> idle;
    /// Problem of a server's configuration that does not prevent its use.
    std::function<void(std::string)> warning;
    /// Message published to the client's channel.
    std::function<void(std::string_view)> message;
  };

  CommandRouter() = default;
  CommandRouter(const CommandRouter&) = delete;
  CommandRouter& operator=(const CommandRouter&) = delete;
  virtual ~CommandRouter() = default;

  /// Connects in the background; Callbacks::ready reports the result.
  virtual void start() = 0;
  /// All servers in use are connected, and their channels are subscribed.
  [[nodiscard]] virtual bool is_ready() const = 0;
  /// The server that owns this key is connected.
  [[nodiscard]] virtual bool reaches(std::string_view key) const = 0;
  /// No command is unanswered.
  [[nodiscard]] virtual bool is_idle() const = 0;

  /// Queues a command for the next flush(). A command with Command::replicas is sent at once, over
  /// a connection of its own, because WAIT blocks all later commands of a connection; `unavailable`
  /// if the replicas do not receive it in time.
  virtual void run(Command&& command) = 0;
  /// Sends the queued commands.
  virtual void flush() = 0;
  /// Closes all connections; unanswered commands fail with this error.
  virtual void stop(const Error& why) = 0;
};

}  // namespace tenure::backends::redis
