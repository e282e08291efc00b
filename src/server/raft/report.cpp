#include "server/raft/report.hpp"

#include <cstdlib>

#include "server/process/exit_code.hpp"

namespace tenure::server::raft {

void stop_process(const Report& report, const std::string& error) {
  if (report) {
    report(log::Level::error, "store_failed", {{"error", error}});
  }
  // Without a core file: the cause is the disk, and a dump would push the event out of sight.
  std::_Exit(static_cast<int>(ExitCode::disk));
}

}  // namespace tenure::server::raft
