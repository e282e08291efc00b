#include "backends/zookeeper/errors.hpp"

#include <zookeeper/zookeeper.h>

namespace tenure::backends::zookeeper {

bool is_connection_lost(int code) {
  // A timeout or a moved session also leaves the outcome unknown.
  return code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT || code == ZSESSIONMOVED;
}

bool is_session_over(int code) {
  return code == ZSESSIONEXPIRED || code == ZCLOSING || code == ZINVALIDSTATE ||
         code == ZAUTHFAILED;
}

Error error_from(int code, const std::string& what) {
  const auto said = what + ": " + zerror(code);
  switch (code) {
    case ZNOAUTH:
      return {.code = Errc::permission_denied,
              .detail = said +
                        "; set the user with zookeeper://user:password@host and check the ACL "
                        "of the node"};
    case ZAUTHFAILED:
    case ZSESSIONCLOSEDREQUIRESASLAUTH: return {.code = Errc::permission_denied, .detail = said};
    case ZINVALIDACL:
      return {.code = Errc::permission_denied,
              .detail = said + "; the servers require credentials: user:password@host"};
    case ZNOCHILDRENFOREPHEMERALS:
      return {.code = Errc::invalid_argument,
              .detail = said +
                        "; the parent is an ephemeral node, which cannot have children; use "
                        "another chroot or name"};
    case ZBADARGUMENTS: return {.code = Errc::invalid_argument, .detail = said};
    case ZUNIMPLEMENTED:
      return {.code = Errc::unsupported, .detail = said + "; ZooKeeper 3.5 or later is needed"};
    case ZTHROTTLEDOP: return {.code = Errc::resource_exhausted, .detail = said};
    case ZNOTREADONLY:
      return {.code = Errc::unavailable, .detail = said + "; the servers have no quorum"};
    default: return {.code = Errc::unavailable, .detail = said};
  }
}

}  // namespace tenure::backends::zookeeper
