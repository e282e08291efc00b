#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "backends/redis/errand.hpp"

namespace tenure::backends::redis {

/// Which of the keys that we use something is about; null: all.
using Concerns = std::function<bool(std::string_view key)>;

/// The servers that keep our locks, whichever they are at the moment: carries errands to them, and
/// hears what they tell. Knows nothing of locks. All on the loop's thread.
class Carrier {
 public:
  struct Calls {
    /// The way to these keys is there, perhaps again: something may have been said in between.
    std::function<void(const Concerns&)> ready;
    /// Everything is within reach again, after something was not; perhaps on other servers, which
    /// may have forgotten something.
    std::function<void()> healed;
    std::function<void(const Error&)> lost;       ///< Something is, or could not be connected.
    std::function<void()> idle;                   ///< All is answered.
    std::function<void(std::string)> doubtful;    ///< Something that people should know.
    std::function<void(std::string_view)> heard;  ///< A message to our channel.
  };

  Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  virtual ~Carrier() = default;

  virtual void start() = 0;
  /// All that is used is within reach, and heard.
  [[nodiscard]] virtual bool is_ready() const = 0;
  [[nodiscard]] virtual bool reaches(std::string_view key) const = 0;
  [[nodiscard]] virtual bool is_idle() const = 0;

  /// Leaves with the next flush().
  virtual void run(Errand&& errand) = 0;
  /// On a connection beside the others, since it waits: answered when so many replicas have what it
  /// wrote, and all that was written before; `unavailable` if they do not in time. Leaves at once.
  virtual void run_replicated(Errand errand, std::uint32_t replicas) = 0;
  virtual void flush() = 0;
  /// All that is open fails with this.
  virtual void stop(const Error& why) = 0;
};

}  // namespace tenure::backends::redis
