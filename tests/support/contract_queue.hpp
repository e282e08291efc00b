#pragma once

#include <string>

#include <tenure/client.hpp>

#include "support/wait_until.hpp"

namespace tenure::test {

/// Who joins the queue of a name, as a watch tells it. A backend without watches needs another way.
class QueueEvents {
 public:
  QueueEvents(const Client& client, const std::string& name) : watch_(client.watch(name).value()) {}

  /// Waits until one more has joined.
  [[nodiscard]] bool one_joins() {
    for (;;) {
      const auto event = watch_.next_for(patience);
      if (!event || event->type == LockEventType::queued) {
        return event.has_value();
      }
    }
  }

 private:
  Watch watch_;
};

}  // namespace tenure::test
