#include "server/rpc/keep_alive_stream.hpp"

#include <memory>
#include <utility>
#include <variant>

#include "wire/answers.hpp"
#include "wire/errors.hpp"

namespace tenure::server {

void KeepAliveStream::asked(v1::LeaseKeepAliveRequest& request) {
  core::RenewLeases renew;
  renew.leases.emplace_back(request.id());
  for (const auto id : request.more_ids()) {
    renew.leases.emplace_back(id);
  }
  if (++in_flight_ >= desk_.limits.operations_in_flight_max) {
    hold_back();
  }
  desk_.store.propose(std::move(renew),
                      [self = std::static_pointer_cast<KeepAliveStream>(shared_from_this())](
                          const Result<Decided>& result) { self->decided(result); });
}

void KeepAliveStream::decided(const Result<Decided>& result) {
  const auto* renewed = result ? std::get_if<core::Renewed>(&result->outcome) : nullptr;
  if (renewed != nullptr) {
    for (const auto& answer : renewed->answers) {
      v1::LeaseKeepAliveResponse response;
      desk_.write_header(*result, *response.mutable_header());
      response.set_id(answer.id.get());
      response.set_ttl_ms(answer.ttl ? wire::milliseconds(*answer.ttl) : 0);
      send(std::move(response));
    }
  } else if (!result) {
    refuse_all(result.error());
    return;
  } else if (const auto* refused = std::get_if<core::Refused>(&result->outcome)) {
    finish(wire::status_of(refused->error));
  }
  settle_one();
}

void KeepAliveStream::settle_one() {
  if (--in_flight_ == 0) {
    finish({});
  } else {
    read_on();
  }
}

void KeepAliveStream::half_closed() {
  settle_one();
}

}  // namespace tenure::server
