#include "server/raft/report.hpp"

#include <cstdlib>

#include "server/process/exit_code.hpp"

namespace tenure::server::raft {

void stop_process(const Report& report, const std::string& why) {
  if (report) {
    report(Severity::error, why + " The server stops now; start it again when this is repaired.");
  }
  // No core file: it would hide the sentence, and nothing is wrong with the program.
  std::_Exit(static_cast<int>(ExitCode::disk));
}

}  // namespace tenure::server::raft
