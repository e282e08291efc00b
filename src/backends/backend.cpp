#include "backends/backend.hpp"

namespace tenure::backends {

std::string_view to_string(Capability capability) noexcept {
  switch (capability) {
    case Capability::fencing: return "fencing";
    case Capability::fifo: return "fifo";
    case Capability::shared: return "shared";
    case Capability::modes: return "modes";
    case Capability::ranges: return "ranges";
    case Capability::semaphore: return "semaphore";
    case Capability::several_names: return "several_names";
    case Capability::upgrade: return "upgrade";
    case Capability::downgrade: return "downgrade";
    case Capability::new_ttl: return "new_ttl";
    case Capability::reentry: return "reentry";
    case Capability::barging: return "barging";
    case Capability::replicas: return "replicas";
    case Capability::one_lease: return "one_lease";
    case Capability::deadlocks: return "deadlocks";
    case Capability::watches: return "watches";
    case Capability::outlives_process: return "outlives_process";
    case Capability::failover: return "failover";
  }
  return "unknown";
}

Error client_closed() {
  return {.code = Errc::unavailable, .detail = "the client is closed"};
}

}  // namespace tenure::backends
