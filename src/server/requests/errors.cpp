#include "server/requests/errors.hpp"

namespace tenure::server {

Error leadership_lost() {
  return {.code = Errc::unavailable,
          .detail =
              "this member is no longer the leader; retry at the leader with the same request id"};
}

}  // namespace tenure::server
