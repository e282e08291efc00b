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

/// While it lives, a line on the terminal says who is before us and for how long: refreshed every
/// second, gone at the end.
class WaitingLine {
 public:
  /// None if stderr is no terminal, or nobody wants to hear anything.
  [[nodiscard]] static std::unique_ptr<WaitingLine> for_terminal(
      const Arguments& arguments, const std::vector<std::string>& names, const std::string& owner);
  WaitingLine(Arguments arguments, std::vector<std::string> names, std::string owner);
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;
  ~WaitingLine();

 private:
  void run(const std::stop_token& stop);
  /// "held by web-3 for 12 s, place 2 of 3 in the queue".
  [[nodiscard]] std::string situation(Result<Service>& service) const;

  Arguments arguments_;
  std::vector<std::string> names_;
  std::string owner_;  ///< Who we are.
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

}  // namespace tenure::cli
