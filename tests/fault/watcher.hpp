#pragma once

#include <optional>
#include <string>

#include "fault/worker.hpp"

namespace tenure::fault {

/// Follows all locks of the workload, and tells the history of every grant it is told of. That
/// somebody waits is known by it, too: the client library does not say so while it waits.
class Watcher {
 public:
  explicit Watcher(Shop& shop) : shop_(shop) {}

  /// Until it is told to stop; a watch that ends is begun again as another watcher.
  void run();

 private:
  void follow(Watch& watch);
  void tell(const LockEvent& event);

  Shop& shop_;
  std::string id_{};
  int watches_ = 0;
};

}  // namespace tenure::fault
