#pragma once

#include <optional>
#include <string>

#include "fault/worker.hpp"

namespace tenure::fault {

/// Watches all locks of the workload and records each grant. It also records queued requests, which
/// the client library does not report while it waits. Runs on its own thread.
class Watcher {
 public:
  explicit Watcher(WorkloadContext& context) : context_(context) {}

  /// Runs until the stop token is triggered; a watch that ends is replaced under a new watcher id.
  void run();

 private:
  void follow(Watch& watch);
  void record(const LockEvent& event);

  WorkloadContext& context_;
  std::string id_{};
  int watches_ = 0;
};

}  // namespace tenure::fault
