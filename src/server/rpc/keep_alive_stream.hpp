#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/requests/errors.hpp"
#include "server/rpc/stream.hpp"
#include "tenure/v1/lease.pb.h"

namespace tenure::server {

/// LeaseKeepAlive: each message renews its leases in one command; an answer for each lease, when
/// it is durable, in the order asked.
class KeepAliveStream final : public Stream<v1::LeaseKeepAliveRequest, v1::LeaseKeepAliveResponse> {
 public:
  using Stream::Stream;

 private:
  void on_request(v1::LeaseKeepAliveRequest& request) override;
  void half_closed() override;
  void closed() override {}
  void on_leadership_lost() override { fail_stream(leadership_lost()); }
  /// `asked`: the leases, as they were asked for; none: as they were proposed.
  void decided(const Result<Decided>& result, const std::vector<std::uint64_t>& asked);
  /// One less in flight: read on if that was what stopped it, or end.
  void operation_done();

  std::size_t in_flight_ = 1;  ///< Messages not answered yet; and one while it reads.
};

}  // namespace tenure::server
