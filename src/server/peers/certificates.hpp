#pragma once

#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>
#include <openssl/types.h>

#include <tenure/error.hpp>

#include "server/raft/entry.hpp"

namespace tenure::server::peers {

/// The certificates of this member as PEM text.
struct PeerTls {
  std::string certificate{};  ///< Of this member, with its chain.
  std::string key{};
  std::string ca{};  ///< Who signs members. Whoever has a certificate of it can be one.
};

/// Both ends of mutual TLS 1.3 between members.
struct TlsContexts {
  std::unique_ptr<boost::asio::ssl::context> acceptor;
  std::unique_ptr<boost::asio::ssl::context> initiator;
};

/// `invalid_argument` says which file is wrong and why: not PEM, a key of another certificate, a
/// certificate of another authority (of another cluster), out of date, or one that names other
/// members than this one.
[[nodiscard]] Result<TlsContexts> make_contexts(const PeerTls& files, raft::MemberId self);

/// The certificate of a member names it by a URI among its subject alternative names,
/// `tenure:member/2`, one for each member that may use it. A certificate without one may belong to
/// anything that the authority signed. Empty if it names the member; else why it cannot be used.
[[nodiscard]] std::string certificate_error(X509& certificate, raft::MemberId member);

/// The same for the certificate that the other end of a connection has shown.
/// REQUIRES: the handshake is complete.
[[nodiscard]] std::string peer_certificate_error(SSL& tls, raft::MemberId member);

/// Whether both files, in PEM, have a certificate in common.
[[nodiscard]] bool have_common_certificate(const std::string& one, const std::string& other);

}  // namespace tenure::server::peers
