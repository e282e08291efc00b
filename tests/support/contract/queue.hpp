#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <tenure/client/client.hpp>

#include "support/contract/contract.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {

/// Observes waiters that join the queue of a name, by a watch, or by counting waiters where watches
/// are not supported. REQUIRES for counting: no waiter leaves in between.
class QueueEvents {
 public:
  QueueEvents(ContractService& service, const Client& client, std::string name)
      : service_(service), name_(std::move(name)) {
    if (auto watch = client.watch(name_)) {
      watch_ = *std::move(watch);
    } else {
      seen_ = service_.waiters(name_).value();
    }
  }

  /// Waits until one more has joined.
  [[nodiscard]] bool one_joins() {
    if (!watch_) {
      ++seen_;
      return eventually([this] { return service_.waiters(name_).value() >= seen_; });
    }
    for (;;) {
      const auto event = watch_->next_for(test_timeout);
      if (!event || event->type == LockEventType::queued) {
        return event.has_value();
      }
    }
  }

 private:
  ContractService& service_;
  std::string name_;
  std::optional<Watch> watch_;
  std::size_t seen_ = 0;
};

}  // namespace tenure::test
