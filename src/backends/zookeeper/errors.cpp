#include "backends/zookeeper/errors.hpp"

#include <zookeeper/zookeeper.h>

namespace tenure::backends::zookeeper {

bool is_connection_lost(int code) {
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
                        "; zookeeper://user:password@host says who we are, and the access "
                        "control list of the node what that is good for"};
    case ZAUTHFAILED:
    case ZSESSIONCLOSEDREQUIRESASLAUTH: return {.code = Errc::permission_denied, .detail = said};
    case ZINVALIDACL:
      return {.code = Errc::permission_denied,
              .detail = said + "; the servers do not know who we are: user:password@host"};
    case ZNOCHILDRENFOREPHEMERALS:
      return {.code = Errc::invalid_argument,
              .detail = said +
                        "; an ephemeral node stands where locks are to be kept: another "
                        "chroot or name helps"};
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
