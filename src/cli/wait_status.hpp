#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/service.hpp"

namespace tenure::cli {

/// Status line on the terminal during a wait: holder, duration and queue position. Refreshed every
/// second by a thread of its own, and erased by the destructor. Informational: errors of its
/// requests are not shown, and never affect the wait.
class WaitStatusLine {
 public:
  /// Null if stderr is not a terminal, or with --output quiet.
  [[nodiscard]] static std::unique_ptr<WaitStatusLine> for_terminal(
      const Arguments& arguments, const std::vector<std::string>& names, const std::string& owner);
  WaitStatusLine(Arguments arguments, std::vector<std::string> names, std::string owner);
  WaitStatusLine(const WaitStatusLine&) = delete;
  WaitStatusLine& operator=(const WaitStatusLine&) = delete;
  ~WaitStatusLine();

 private:
  /// Main function of the thread.
  void run(const std::stop_token& stop);
  /// "position 2 of 3 in the queue, waiting for backup: held by web-3 for 12 s".
  [[nodiscard]] std::string status_text(Result<Service>& service) const;

  /// Copy for the thread, which opens a connection of its own.
  Arguments arguments_;
  std::vector<std::string> names_;
  std::string owner_;  ///< Owner of this client.
  std::mutex mutex_;
  /// Waits with a stop token; nothing notifies it.
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace tenure::cli
