#pragma once

#include <optional>
#include <string>

#include "backends/backend.hpp"
#include "backends/rpc/channel_connector.hpp"
#include "backends/url.hpp"
#include "grpc/status.hpp"
#include "tenure/v1/admin.pb.h"
#include "tenure/v1/session.pb.h"
#include "tenure/v1/watch.pb.h"

namespace tenure::backends::tenured {

/// Writes a request of the client as the message of the protocol. `out` has to be empty.
void write(const AcquireRequest& request, v1::Acquire& out);
void write(const ReleaseRequest& request, v1::Release& out);
void write(const DowngradeRequest& request, v1::Downgrade& out);
void write(const WatchRequest& request, Revision start, v1::WatchCreate& out);

/// Error of a refused operation.
[[nodiscard]] Error error_from(const v1::Refused& refused);
using backends::error_from;
/// Endpoint of the leader from a redirect; empty if the server does not know it.
[[nodiscard]] std::optional<Endpoint> leader_in(const grpc::Status& status);
/// Event of a watch. Owner, token and lease are those of the holder that left, if it left.
[[nodiscard]] LockEvent event_from(const v1::Event& event);
/// Holder in the reply to a query.
[[nodiscard]] Holder holder_from(const v1::Holder& holder);

}  // namespace tenure::backends::tenured
