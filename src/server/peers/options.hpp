#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>

#include "server/peers/acquaintances.hpp"
#include "server/peers/certificates.hpp"
#include "server/peers/greeting.hpp"
#include "server/peers/message_codec.hpp"
#include "server/peers/outbox.hpp"
#include "server/peers/snapshot_transfer.hpp"
#include "server/raft/report.hpp"

namespace tenure::server::peers {

/// How long to wait for whom.
struct Patience {
  std::chrono::milliseconds connect{2000};
  /// From the connection to the end of the greeting, TLS included.
  std::chrono::milliseconds greeting{5000};
  /// Between two attempts to connect: the first pause, which doubles up to the longest. Each is
  /// shortened by chance by up to a half, so that members do not knock in step.
  std::chrono::milliseconds first_pause{20};
  std::chrono::milliseconds longest_pause{1000};
  /// Whoever does not acknowledge bytes for so long is gone, though no FIN came.
  std::chrono::milliseconds silence{3000};
};

struct PeerOptions {
  Self self{};
  std::optional<PeerTls> tls{};  ///< None: plain TCP.
  Patience patience{};
  OutboxLimits outbox{};
  MessageLimits message{};
  SnapshotLimits snapshot{};
  /// Connections that have not said yet who they are. The oldest gives way.
  std::size_t strangers_max = 16;
  /// Members that call although they are not in the configuration, and are called back: the leader
  /// of a member that joins, one that is ahead of us, one that was removed.
  std::size_t guests_max = 8;
  /// Hears what people should know.
  raft::Report report = [](raft::Severity, const std::string&) {};
};

/// What all connections share; outlives them.
struct Hall {
  boost::asio::io_context& loop;
  PeerOptions options;
  std::shared_ptr<TlsContexts> tls;      ///< Replaced when certificates are renewed. Null: plain.
  std::shared_ptr<Acquaintances> known;  ///< Not null.
};

}  // namespace tenure::server::peers
