#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/requests/errors.hpp"
#include "server/rpc/stream.hpp"
#include "tenure/v1/lease.pb.h"

namespace tenure::server {

/// LeaseKeepAlive: each message renews its leases in one command. One response per lease, when the
/// renewal is durable, in request order.
class KeepAliveStream final : public Stream<v1::LeaseKeepAliveRequest, v1::LeaseKeepAliveResponse> {
 public:
  using Stream::Stream;

 private:
  void on_request(v1::LeaseKeepAliveRequest& request) override;
  /// The stream ends when the renewals in progress are decided.
  void half_closed() override;
  void closed() override {}
  void on_leadership_lost() override { fail_stream(leadership_lost()); }
  /// `asked`: lease ids as requested; empty: as proposed.
  void decided(const Result<Decided>& result, const std::vector<std::uint64_t>& asked);
  /// Completes one message: resumes reading if it was paused, or ends the stream.
  void operation_done();

  std::size_t in_flight_ = 1;  ///< Undecided messages, plus one until the client half-closes.
};

}  // namespace tenure::server
