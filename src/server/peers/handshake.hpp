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

/// Versions of the protocol between members that this program speaks. Both ends of a connection use
/// the lower of their newest versions.
///
///     2: greetings name the directory they come from
///     3: greetings have cluster versions
///
/// A program that speaks version 2 only refuses a Hello of version 3; the caller then greets again
/// with version 2. From version 3 on a Hello of a newer version begins with the fields of the
/// older.
inline constexpr std::uint64_t oldest_protocol = 2;
inline constexpr std::uint64_t newest_protocol = 3;

/// Cluster versions of a member whose protocol is older than 3.
inline constexpr raft::Versions versions_before_3{.newest = core::version_1,
                                                  .wanted = core::version_1};

/// The first words on a connection, one frame each:
///
///     caller                                   called
///     Hello {version, ids, nonce}      →
///                                      ←       Welcome {version, ids, nonce, proof}, or Refusal
///     Proof {proof}                    →
///     messages ...                     →       ... or Refusal
///
/// A proof is an HMAC over both nonces and ids with the secret of the cluster, so it shows that the
/// other end has the secret, and cannot be used a second time. Without a secret it shows nothing;
/// then TLS must, or only this machine can call.
struct Hello {
  std::uint64_t version = newest_protocol;  ///< The newest that the caller offers.
  raft::ClusterId cluster{};
  raft::MemberId initiator{};
  raft::MemberId acceptor{};  ///< Whom the caller believes to have reached.
  std::string nonce{};
  std::string address{};  ///< host:port where the caller can be called back.
  raft::Incarnation incarnation{};
  raft::Origin origin{};
  raft::Versions versions = versions_before_3;
};

struct Welcome {
  std::uint64_t version = newest_protocol;  ///< The one that both ends use from now on.
  std::string nonce{};
  std::string proof{};
  raft::Incarnation incarnation{};
  raft::Origin origin{};
  raft::Versions versions = versions_before_3;
};

struct Proof {
  std::string proof{};
};

/// Why a caller is sent away. Numbers are those of the wire.
enum class Reason : std::uint8_t {
  version = 1,      ///< The two have no version of the protocol in common.
  cluster = 2,      ///< They belong to different clusters.
  member = 3,       ///< Somebody else was meant to be reached.
  same_member = 4,  ///< Both say that they are the same member.
  secret = 5,       ///< They have different secrets.
  certificate = 6,  ///< The certificate names other members.
  garbage = 7,      ///< It does not speak this protocol at all.
  incarnation = 8,  ///< Not the one that was known under this id: its directory is another.
  origin = 9,       ///< They began with different states.
};

struct Refusal {
  Reason reason{};
  std::string text{};  ///< For people, from the view of the one who refuses.
};

/// Who this member is.
struct Self {
  raft::ClusterId cluster{};
  raft::MemberId member{};
  std::string address{};  ///< host:port where it can be called.
  std::string secret{};   ///< Of the cluster; may be empty.
  raft::Incarnation incarnation{};
  raft::Origin origin{};
  raft::Versions versions = raft::newest_versions();
};

[[nodiscard]] std::string make_nonce();

[[nodiscard]] Frame encode(const Hello& hello);
[[nodiscard]] Frame encode(const Welcome& welcome);
[[nodiscard]] Frame encode(const Proof& proof);
[[nodiscard]] Frame encode(const Refusal& refusal);

// Each is `invalid_argument` if the frame is something else.
[[nodiscard]] Result<Hello> decode_hello(const ReceivedFrame& frame);
[[nodiscard]] Result<Welcome> decode_welcome(const ReceivedFrame& frame);
[[nodiscard]] Result<Proof> decode_proof(const ReceivedFrame& frame);
[[nodiscard]] Result<Refusal> decode_refusal(const ReceivedFrame& frame);

/// What is wrong with this caller; reason 0: nothing.
[[nodiscard]] Refusal check_hello(const Hello& hello, const Self& self);

/// What is wrong with a member that began with this, for people; empty: nothing.
[[nodiscard]] std::string origin_error(raft::MemberId member, raft::Origin origin,
                                       const Self& self);

enum class End : std::uint8_t { initiator, acceptor };
/// What this end must show. Of the welcome all but its proof.
[[nodiscard]] std::string prove(End end, const std::string& secret, const Hello& hello,
                                const Welcome& welcome);
/// Takes as long for a wrong one as for the right one.
[[nodiscard]] bool is_same_proof(std::string_view left, std::string_view right);

/// In the meta of frames before both ends know each other.
inline constexpr FrameLimits handshake_limits{.meta_bytes_max = 4096, .body_bytes_max = 0};

[[nodiscard]] std::string in_hexadecimal(raft::ClusterId cluster);

}  // namespace tenure::server::peers
