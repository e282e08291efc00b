#include "server/rpc/keep_alive_stream.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include "wire/answers.hpp"
#include "wire/errors.hpp"
#include "wire/requests.hpp"

namespace tenure::server {

void KeepAliveStream::on_request(v1::LeaseKeepAliveRequest& request) {
  // A removed user must not keep its leases alive.
  if (finish_if_unauthenticated()) {
    return;
  }
  auto renewal = wire::renewal_from(request);
  std::vector<std::uint64_t> asked;
  if (principal_) {
    // Foreign ids are masked below, but the response must repeat the id that the client sent.
    asked.push_back(request.id());
    asked.insert(asked.end(), request.more_ids().begin(), request.more_ids().end());
  }
  if (!renewal) {
    finish(wire::status_of(renewal.error()));
    return;
  }
  if (principal_) {
    mask_foreign_leases(*principal_, context_.store.state(), *renewal);
  }
  // Flow control: a client that sends faster than renewals become durable is not read.
  if (++in_flight_ >= context_.limits.operations_in_flight_max) {
    pause_reading();
  }
  context_.store.propose(
      *std::move(renewal),
      [self = std::static_pointer_cast<KeepAliveStream>(shared_from_this()),
       asked = std::move(asked)](const Result<Decided>& result) { self->decided(result, asked); });
}

void KeepAliveStream::decided(const Result<Decided>& result,
                              const std::vector<std::uint64_t>& asked) {
  const auto* renewed = result ? std::get_if<core::Renewed>(&result->outcome) : nullptr;
  if (renewed != nullptr) {
    for (std::size_t index = 0; index < renewed->answers.size(); ++index) {
      const auto& answer = renewed->answers[index];
      v1::LeaseKeepAliveResponse response;
      context_.write_header(*result, *response.mutable_header());
      response.set_id(asked.empty() ? answer.id.get() : asked[index]);
      // 0: the lease does not exist any more; the stream continues for the other leases.
      response.set_ttl_ms(answer.ttl ? wire::milliseconds(*answer.ttl) : 0);
      send(std::move(response));
    }
  } else if (!result) {
    // Ends the stream without operation_done(): the count no longer matters.
    fail_stream(result.error());
    return;
  } else if (const auto* refused = std::get_if<core::Refused>(&result->outcome)) {
    finish(wire::status_of(refused->error));
  }
  operation_done();
}

void KeepAliveStream::operation_done() {
  if (--in_flight_ == 0) {
    finish({});
  } else {
    resume_reading();
  }
}

void KeepAliveStream::half_closed() {
  operation_done();
}

}  // namespace tenure::server
