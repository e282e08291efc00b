#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "backends/redis/command.hpp"

namespace tenure::backends::redis {

/// Which of the keys that we use something is about; null: all.
using KeyFilter = std::function<bool(std::string_view key)>;

/// The servers that keep our locks, whichever they are at the moment: carries commands to them, and
/// hears what they tell. Knows nothing of locks. All on the loop's thread.
class CommandRouter {
 public:
  struct Callbacks {
    /// The way to these keys is there, perhaps again: something may have been said in between.
    std::function<void(const KeyFilter&)> ready;
    /// Everything is within reach again, after something was not; perhaps on other servers, which
    /// may have forgotten something.
    std::function<void()> recovered;
    std::function<void(const Error&)> disconnected;  ///< Something is, or could not be connected.
    std::function<void()> idle;                      ///< All is answered.
    std::function<void(std::string)> warning;        ///< Something that people should know.
    std::function<void(std::string_view)> message;   ///< A message to our channel.
  };

  CommandRouter() = default;
  CommandRouter(const CommandRouter&) = delete;
  CommandRouter& operator=(const CommandRouter&) = delete;
  virtual ~CommandRouter() = default;

  virtual void start() = 0;
  /// All that is used is within reach, and message.
  [[nodiscard]] virtual bool is_ready() const = 0;
  [[nodiscard]] virtual bool reaches(std::string_view key) const = 0;
  [[nodiscard]] virtual bool is_idle() const = 0;

  /// Leaves with the next flush().
  virtual void run(Command&& command) = 0;
  /// On a connection beside the others, since it waits: answered when so many replicas have what it
  /// wrote, and all that was written before; `unavailable` if they do not in time. Leaves at once.
  virtual void run_replicated(Command command, std::uint32_t replicas) = 0;
  virtual void flush() = 0;
  /// All that is open fails with this.
  virtual void stop(const Error& why) = 0;
};

}  // namespace tenure::backends::redis
