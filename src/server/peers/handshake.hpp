#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tenure/error.hpp>

#include "server/peers/frame.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/versions.hpp"

namespace tenure::server::peers {

/// Supported versions of the protocol between members. Both ends of a connection use the lower of
/// their newest versions.
///
///     2: Hello and Welcome contain the incarnation and the origin of the data directory
///     3: Hello and Welcome contain the cluster versions
///
/// A program that supports only version 2 refuses a Hello of version 3; the initiator then repeats
/// the handshake with version 2. From version 3 on, a newer Hello starts with the fields of the
/// older one.
inline constexpr std::uint64_t oldest_protocol = 2;
inline constexpr std::uint64_t newest_protocol = 3;

/// Cluster versions of a member whose protocol is older than 3.
inline constexpr raft::Versions versions_before_3{.newest = core::version_1,
                                                  .wanted = core::version_1};

/// Handshake of a connection, one frame for each message:
///
///     initiator                                acceptor
///     Hello {version, ids, nonce}      →
///                                      ←       Welcome {version, ids, nonce, proof}, or Refusal
///     Proof {proof}                    →
///     messages ...                     →       ... or Refusal
///
/// A proof is an HMAC-SHA256 over both nonces and ids, keyed with the secret of the cluster. It
/// proves possession of the secret and cannot be replayed. Without a secret it proves nothing; then
/// TLS authenticates the peer, or the port is open to this machine only.
struct Hello {
  std::uint64_t version = newest_protocol;  ///< Newest version of the initiator.
  raft::ClusterId cluster{};
  raft::MemberId initiator{};
  raft::MemberId acceptor{};  ///< Member that the initiator means to reach.
  std::string nonce{};
  std::string address{};  ///< Advertised host:port of the initiator.
  raft::Incarnation incarnation{};
  raft::Origin origin{};
  raft::Versions versions = versions_before_3;
};

struct Welcome {
  std::uint64_t version = newest_protocol;  ///< Version of the connection.
  std::string nonce{};
  std::string proof{};
  raft::Incarnation incarnation{};
  raft::Origin origin{};
  raft::Versions versions = versions_before_3;
};

struct Proof {
  std::string proof{};
};

/// Reason of a Refusal. Wire format: values are never reused.
enum class Reason : std::uint8_t {
  version = 1,      ///< No common protocol version.
  cluster = 2,      ///< Different clusters.
  member = 3,       ///< The acceptor is not the intended member.
  same_member = 4,  ///< Both ends claim the same member id.
  secret = 5,       ///< Different secrets.
  certificate = 6,  ///< The certificate names other members.
  malformed = 7,    ///< Invalid handshake.
  incarnation = 8,  ///< The data directory of the initiator was replaced.
  origin = 9,       ///< The members started with different states.
};

struct Refusal {
  Reason reason{};
  std::string text{};  ///< Human-readable reason, from the view of the acceptor.
};

/// Identity of this member.
struct Self {
  raft::ClusterId cluster{};
  raft::MemberId member{};
  std::string address{};  ///< Advertised host:port.
  std::string secret{};   ///< Secret of the cluster; may be empty.
  raft::Incarnation incarnation{};
  raft::Origin origin{};
  raft::Versions versions = raft::newest_versions();
};

/// Random bytes that no earlier handshake contained.
[[nodiscard]] std::string make_nonce();

[[nodiscard]] Frame encode(const Hello& hello);
[[nodiscard]] Frame encode(const Welcome& welcome);
[[nodiscard]] Frame encode(const Proof& proof);
[[nodiscard]] Frame encode(const Refusal& refusal);

// Each returns `invalid_argument` if the frame is another message.
[[nodiscard]] Result<Hello> decode_hello(const ReceivedFrame& frame);
[[nodiscard]] Result<Welcome> decode_welcome(const ReceivedFrame& frame);
[[nodiscard]] Result<Proof> decode_proof(const ReceivedFrame& frame);
[[nodiscard]] Result<Refusal> decode_refusal(const ReceivedFrame& frame);

/// Checks a Hello. Reason 0: accepted.
[[nodiscard]] Refusal check_hello(const Hello& hello, const Self& self);

/// Why a member with this origin is rejected; empty: it is accepted.
[[nodiscard]] std::string origin_error(raft::MemberId member, raft::Origin origin,
                                       const Self& self);

enum class End : std::uint8_t { initiator, acceptor };
/// Proof that this end has to present. The proof field of `welcome` is not part of it.
[[nodiscard]] std::string prove(End end, const std::string& secret, const Hello& hello,
                                const Welcome& welcome);
/// Comparison in constant time, against timing attacks.
[[nodiscard]] bool is_same_proof(std::string_view left, std::string_view right);

/// Limits of frames of unauthenticated peers: bounds the memory that they can allocate.
inline constexpr FrameLimits handshake_limits{.meta_bytes_max = 4096, .body_bytes_max = 0};

/// Cluster id as the identity file shows it.
[[nodiscard]] std::string in_hexadecimal(raft::ClusterId cluster);

}  // namespace tenure::server::peers
