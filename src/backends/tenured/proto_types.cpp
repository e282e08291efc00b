#include "backends/tenured/proto_types.hpp"

#include <variant>

#include "backends/rpc/endpoint_selector.hpp"

namespace tenure::backends::tenured {
namespace {

v1::Mode mode_of(LockMode mode) {
  // Both enumerations have the same order; 0 means unspecified in protobuf.
  static_assert(static_cast<int>(LockMode::exclusive) + 1 == v1::MODE_EXCLUSIVE);
  return static_cast<v1::Mode>(static_cast<int>(mode) + 1);
}

/// Visitor: writes the claim of an item.
struct WriteClaim {
  v1::Item& out;

  void operator()(LockMode mode) const { out.set_mode(mode_of(mode)); }
  void operator()(const Permits& permits) const {
    out.mutable_permits()->set_capacity(permits.capacity);
    out.mutable_permits()->set_wanted(permits.wanted);
  }
  void operator()(const Keys& keys) const {
    out.mutable_keys()->set_mode(mode_of(keys.mode));
    auto& range = *out.mutable_keys()->mutable_range();
    range.set_start(keys.range.start());
    if (keys.range.end().has_value()) {
      range.set_end(*keys.range.end());
    }
  }
};

/// Detail of a refusal, with the cycle of a deadlock.
std::string detail_of(const v1::Refused& refused) {
  auto detail = refused.detail();
  for (const auto& step : refused.cycle()) {
    detail += detail.empty() ? "" : "; ";
    detail += step.owner() + " waits for " + step.name();
  }
  return detail;
}

}  // namespace

void write(const AcquireRequest& request, v1::Acquire& out) {
  out.set_lease_id(request.lease.get());
  out.set_request_id(request.request.get());
  for (const auto& item : request.spec->items) {
    auto& written = *out.add_items();
    written.set_name(item.name);
    std::visit(WriteClaim{written}, item.claim);
  }
  if (request.queue == Queue::skip) {
    out.set_timeout_ms(0);
  }
  out.set_self_conflict(request.spec->self_conflict == SelfConflict::reenter
                            ? v1::SELF_CONFLICT_REENTER
                            : v1::SELF_CONFLICT_REFUSE);
  out.set_owner(request.spec->owner);
  out.set_metadata(request.spec->metadata);
}

void write(const ReleaseRequest& request, v1::Release& out) {
  out.set_lease_id(request.lease.get());
  out.set_request_id(request.request.get());
  out.set_fencing_token(request.token.get());
}

void write(const DowngradeRequest& request, v1::Downgrade& out) {
  out.set_lease_id(request.lease.get());
  out.set_request_id(request.request.get());
  out.set_fencing_token(request.token.get());
  out.set_mode(mode_of(request.mode));
}

void write(const WatchRequest& request, Revision start, v1::WatchCreate& out) {
  out.set_key(request.name);
  out.set_prefix(request.scope == WatchScope::prefix);
  out.set_start_revision(start.get());
  // The previous record identifies the holder that left.
  out.set_previous_record(true);
}

Error error_from(const v1::Refused& refused) {
  // Both enumerations have the same values. A code of a newer server is unknown here and maps to
  // `unavailable`.
  static_assert(static_cast<int>(Errc::unsupported) == v1::Code_MAX);
  const bool is_known = v1::Code_IsValid(refused.code()) && refused.code() != v1::CODE_UNSPECIFIED;
  return {.code = is_known ? static_cast<Errc>(refused.code()) : Errc::unavailable,
          .detail = detail_of(refused)};
}

std::optional<Endpoint> leader_in(const grpc::Status& status) {
  for (const auto& trailer : status.trailers) {
    if (trailer.name == "tenure-leader") {
      return endpoint_from(trailer.value);
    }
  }
  return std::nullopt;
}

LockEvent event_from(const v1::Event& event) {
  const auto& record = event.type() == v1::CHANGE_DELETE ? event.previous() : event.record();
  return {.revision = Revision{event.revision()},
          .type = static_cast<LockEventType>(static_cast<int>(event.cause()) - 1),
          .name = event.record().key(),
          .owner = record.owner(),
          .token = FencingToken{record.fencing_token()},
          .lease = LeaseId{record.lease_id()},
          .metadata = record.metadata(),
          .user = record.user(),
          .operator_name = event.operator_name(),
          .reason = event.reason()};
}

Holder holder_from(const v1::Holder& holder) {
  return {.owner = holder.owner(),
          .token = FencingToken{holder.fencing_token()},
          .lease = LeaseId{holder.lease_id()},
          .metadata = holder.metadata(),
          .user = holder.user()};
}

}  // namespace tenure::backends::tenured
