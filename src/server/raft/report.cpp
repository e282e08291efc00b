#include "server/raft/report.hpp"

#include <cstdlib>

namespace tenure::server::raft {

void stop_process(const Report& report, const std::string& why) {
  if (report) {
    report(Severity::error, why + " The server stops now; start it again when this is repaired.");
  }
  std::abort();
}

}  // namespace tenure::server::raft
