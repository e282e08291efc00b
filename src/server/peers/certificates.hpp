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
  std::unique_ptr<boost::asio::ssl::context> called;
  std::unique_ptr<boost::asio::ssl::context> caller;
};

/// `invalid_argument` says which file is wrong and why: not PEM, a key of another certificate, a
/// certificate of another authority (of another cluster), out of date, or one that names other
/// members than this one.
[[nodiscard]] Result<TlsContexts> make_contexts(const PeerTls& files, raft::MemberId self);

/// A certificate may say whose it is by URIs among its subject alternative names, `tenure:member/2`
/// for each member that may use it. If it does, it is nobody else's. Empty if that is so; else why
/// not.
[[nodiscard]] std::string complaint_about(X509& certificate, raft::MemberId member);

/// The same for the one who was called at this host: a certificate that names no member must name
/// the host. `tls` has greeted.
[[nodiscard]] std::string complaint_about_called(SSL& tls, raft::MemberId member,
                                                 const std::string& host);
[[nodiscard]] std::string complaint_about_caller(SSL& tls, raft::MemberId member);

}  // namespace tenure::server::peers
