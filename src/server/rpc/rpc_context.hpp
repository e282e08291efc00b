#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "net/shares.hpp"
#include "server/auth/authorizer.hpp"
#include "server/events/watch_hub.hpp"
#include "server/metrics/metrics.hpp"
#include "server/requests/waiter_registry.hpp"
#include "server/rpc/leadership.hpp"
#include "server/store/store.hpp"
#include "tenure/v1/header.pb.h"

namespace tenure::server {

struct RpcLimits {
  std::size_t watches_per_stream_max = 64;
  std::size_t watch_buffer_events_max = 4096;   ///< Of one watch; who is further behind is cut.
  std::size_t operations_in_flight_max = 4096;  ///< Of one stream; it is not read meanwhile.
  /// Session, Watch and keep-alive streams, together; one user or address gets three quarters.
  std::size_t sessions_max = 10'000;
};

/// What stands behind every call. Outlives them all.
struct RpcContext {
  /// Reads the files of users and certificates again; the number of users.
  using Reload = std::function<Result<std::size_t>()>;

  Store& store;
  RpcLimits limits{};
  std::string version{};
  auth::Authorizer* authorizer =
      nullptr;                       ///< Null: there are no users, and everybody may do everything.
  const Metrics* metrics = nullptr;  ///< What is counted; null: nothing.
  Reload reload{};                   ///< Empty: there are no such files.
  Leadership leadership{store};
  WaiterRegistry waiters{};
  WatchHub watches{};
  /// The server stops: who is cut off now did not go away, so its wait stays in the queue.
  std::atomic<bool> is_stopping = false;
  std::size_t streams = 0;  ///< Open at the moment. Of the store's thread.
  /// Which of them are whose.
  net::Shares streams_by_address{net::Shares::three_quarters_of(limits.sessions_max)};
  net::Shares streams_by_user{net::Shares::three_quarters_of(limits.sessions_max)};

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
