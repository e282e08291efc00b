#include "server/requests/errors.hpp"

namespace tenure::server {

Error leadership_lost() {
  return {.code = Errc::unavailable,
          .detail = "this member does not lead any more; ask the leader, with the same request id"};
}

}  // namespace tenure::server
