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
  std::string certificate{};  ///< Certificate of this member with its chain.
  std::string key{};
  std::string ca{};  ///< Authority of the members. Every certificate signed by it is accepted.
};

/// Contexts of mutual TLS 1.3 between members, one for each role.
struct TlsContexts {
  std::unique_ptr<boost::asio::ssl::context> acceptor;
  std::unique_ptr<boost::asio::ssl::context> initiator;
};

/// `invalid_argument` names the file and the error: not PEM, a key of another certificate, a
/// certificate of another authority (another cluster), an expired one, or one of another member.
[[nodiscard]] Result<TlsContexts> make_contexts(const PeerTls& files, raft::MemberId self);

/// Why this certificate does not authenticate the member; empty: it does. The certificate must
/// contain the URI `tenure:member/ID` among its subject alternative names, one for each member that
/// uses it: a certificate without the URI may belong to any program of the same authority.
[[nodiscard]] std::string certificate_error(X509& certificate, raft::MemberId member);

/// Like certificate_error(), for the certificate of the peer of a connection.
/// REQUIRES: the handshake is complete.
[[nodiscard]] std::string peer_certificate_error(SSL& tls, raft::MemberId member);

/// Whether two PEM texts have a certificate in common.
[[nodiscard]] bool have_common_certificate(const std::string& one, const std::string& other);

}  // namespace tenure::server::peers
