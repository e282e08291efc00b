#include "backends/backend.hpp"

namespace tenure::backends {

std::string_view to_string(Promise promise) noexcept {
  switch (promise) {
    case Promise::fencing: return "fencing";
    case Promise::fifo: return "fifo";
    case Promise::shared: return "shared";
    case Promise::modes: return "modes";
    case Promise::ranges: return "ranges";
    case Promise::semaphore: return "semaphore";
    case Promise::several_names: return "several_names";
    case Promise::upgrade: return "upgrade";
    case Promise::downgrade: return "downgrade";
    case Promise::new_ttl: return "new_ttl";
    case Promise::reentry: return "reentry";
    case Promise::barging: return "barging";
    case Promise::replicas: return "replicas";
    case Promise::one_lease: return "one_lease";
    case Promise::deadlocks: return "deadlocks";
    case Promise::watches: return "watches";
    case Promise::outlives_process: return "outlives_process";
    case Promise::failover: return "failover";
  }
  return "unknown";
}

Error client_closed() {
  return {.code = Errc::unavailable, .detail = "the client ends"};
}

}  // namespace tenure::backends
