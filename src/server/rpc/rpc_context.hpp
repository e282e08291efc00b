#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "net/shares.hpp"
#include "server/auth/authorizer.hpp"
#include "server/events/watch_hub.hpp"
#include "server/metrics/metrics.hpp"
#include "server/requests/rollback_gate.hpp"
#include "server/requests/waiter_registry.hpp"
#include "server/rpc/leadership.hpp"
#include "server/store/store.hpp"
#include "tenure/v1/header.pb.h"

namespace tenure::server {

/// Limits of streams. Unary calls are limited by grpc::ServerContext.
struct RpcLimits {
  std::size_t watches_per_stream_max = 64;
  std::size_t watch_buffer_events_max =
      4096;  ///< Pending events per watch; a slower reader is cancelled.
  std::size_t operations_in_flight_max = 4096;  ///< Undecided operations per stream; beyond that
                                                ///< the stream is not read (flow control).
  /// Open Session, Watch and LeaseKeepAlive streams in total. One user or address gets three
  /// quarters.
  std::size_t streams_max = 10'000;
};

/// Shared context of all calls. Outlives them. Store thread only, except `is_stopping`.
struct RpcContext {
  /// Reloads users and certificates; returns the number of users.
  using Reload = std::function<Result<std::size_t>()>;

  Store& store;
  RpcLimits limits{};
  std::string version{};
  auth::Authorizer* authorizer = nullptr;  ///< Null: no users; every call is allowed.
  const Metrics* metrics = nullptr;        ///< Null: nothing is counted.
  Reload reload{};  ///< Empty: neither users nor certificates are configured.
  /// Runs work for clients on the store's thread, between the work of the store.
  boost::asio::any_io_executor client_work{store.loop().get_executor()};
  Leadership leadership{store};
  WaiterRegistry waiters{};
  RollbackGate rollbacks{};
  WatchHub watches{};
  /// The server stops: a closed connection is not a disconnected client, so its waits keep their
  /// queue positions.
  std::atomic<bool> is_stopping = false;
  std::size_t streams = 0;  ///< Number of open streams.
  /// Shares of the open streams per address and per user.
  net::Shares streams_by_address{net::Shares::three_quarters_of(limits.streams_max)};
  net::Shares streams_by_user{net::Shares::three_quarters_of(limits.streams_max)};

  /// Header of a response: a client detects by the cluster id that it reached another cluster, and
  /// by the revision that a response is older than another one.
  void write_header(core::Revision revision, std::uint64_t term, v1::Header& out) const {
    out.set_cluster_id(store.identity().cluster);
    out.set_member_id(store.identity().member);
    out.set_revision(revision.get());
    out.set_raft_term(term);
  }
  void write_header(const Decided& decided, v1::Header& out) const {
    write_header(decided.revision, decided.term, out);
  }
  void write_header(const View& view, v1::Header& out) const {
    write_header(view.state.revision, view.log.term, out);
  }
};

}  // namespace tenure::server
