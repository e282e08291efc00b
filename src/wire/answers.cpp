#include "wire/answers.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <type_traits>
#include <variant>

#include "wire/errors.hpp"
#include "wire/items.hpp"

namespace tenure::wire {
namespace {

/// Without leading zeros.
void append_hex(std::string& text, std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), value, 16).ptr;
  text.append(digits.begin(), end);
}

/// The caller has redacted the cycle.
void write_refused(const core::Refused& refused, v1::Refused& out) {
  out.set_code(code_of(refused.error.code));
  out.set_detail(refused.error.detail);
  for (const auto& step : refused.cycle) {
    write(step, *out.add_cycle());
  }
}

/// UNSPECIFIED: the error is no ordinary result, so the call fails with a status.
v1::Reason reason_of(Errc code) {
  switch (code) {
    case Errc::would_block: return v1::REASON_WOULD_BLOCK;
    case Errc::timed_out: return v1::REASON_TIMED_OUT;
    case Errc::cancelled: return v1::REASON_CANCELLED;
    case Errc::deadlock: return v1::REASON_DEADLOCK;
    default: return v1::REASON_UNSPECIFIED;
  }
}

/// Effect of an event on the record of the lock.
v1::Change change_of(const core::Event& event) {
  switch (event.type) {
    case core::EventType::granted:
    case core::EventType::downgraded: return v1::CHANGE_PUT;
    case core::EventType::released:
    case core::EventType::expired:
    case core::EventType::revoked:
    case core::EventType::forced:
      // Without a token the event ended a wait.
      return event.token == core::FencingToken{} ? v1::CHANGE_NONE : v1::CHANGE_DELETE;
    default: return v1::CHANGE_NONE;
  }
}

/// Record of the hold that the event concerns.
void write_record(const core::Event& event, v1::LockRecord& out) {
  out.set_key(event.item.name);
  out.set_owner(event.owner);
  out.set_lease_id(event.lease.get());
  out.set_fencing_token(event.token.get());
  out.set_mod_revision(event.revision.get());
  out.set_metadata(event.metadata);
  out.set_request_id(event.request.get());
  out.set_user(event.user);
  write(event.item, *out.mutable_item());
}

/// Visitor that writes each alternative of Outcome.
/// Without a catch-all overload: a new outcome does not compile without its encoding.
class OutcomeWriter {
 public:
  explicit OutcomeWriter(v1::Outcome& out) : out_(out) {}

  void operator()(const core::Done&) { out_.mutable_done(); }
  void operator()(const core::Granted& granted) {
    out_.mutable_granted()->set_fencing_token(granted.token.get());
    out_.mutable_granted()->set_count(granted.count);
  }
  void operator()(const core::Queued& queued) {
    out_.mutable_queued()->set_position(queued.position);
    out_.mutable_queued()->set_ticket(queued.ticket.get());
  }
  void operator()(const core::Released& released) {
    out_.mutable_released()->set_count_left(released.count_left);
  }
  void operator()(const core::LeaseGranted& lease) {
    out_.mutable_lease_granted()->set_id(lease.id.get());
    out_.mutable_lease_granted()->set_ttl_ms(milliseconds(lease.ttl));
  }
  void operator()(const core::Renewed& renewed) {
    auto& left = *out_.mutable_renewed();
    for (const auto& answer : renewed.answers) {
      // In the order of the request; 0: the lease does not exist.
      left.add_ttl_ms(answer.ttl ? milliseconds(*answer.ttl) : 0);
      if (answer.is_unconfirmed) {
        left.add_unconfirmed(answer.id.get());
      }
    }
  }
  void operator()(const core::Downgraded& downgraded) {
    out_.mutable_downgraded()->set_mode(mode_of(downgraded.mode));
  }
  // Sessions cannot force a release; Admin.ForceRelease has its own encoding.
  void operator()(const core::Forced&) { out_.mutable_done(); }
  void operator()(const core::LeaseLost&) { out_.mutable_refused()->set_code(v1::CODE_LEASE_LOST); }
  void operator()(const core::Refused& refused) { write_refused(refused, *out_.mutable_refused()); }

 private:
  v1::Outcome& out_;
};

}  // namespace

std::string key_of(const core::Acquire& acquire) {
  // An empty request is possible here: the store rejects it later.
  auto key = acquire.items.empty() ? std::string() : std::string(acquire.items.front().name);
  key += '/';
  append_hex(key, acquire.lease.get());
  key += '-';
  append_hex(key, acquire.request.get());
  return key;
}

std::uint64_t milliseconds(core::ClusterTime time) {
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  // A deadline in the past is no time left; the protobuf field is unsigned.
  return whole < 0 ? 0 : static_cast<std::uint64_t>(whole);
}

void write(const core::Granted& granted, v1::LockResponse& out) {
  out.set_acquired(true);
  out.set_fencing_token(granted.token.get());
  out.set_count(granted.count);
}

bool is_busy(const core::Refused& refused) {
  return reason_of(refused.error.code) != v1::REASON_UNSPECIFIED;
}

void write(const core::Refused& refused, v1::LockResponse& out) {
  out.set_acquired(false);
  out.set_reason(reason_of(refused.error.code));
  out.set_detail(to_string(refused.error));
  for (const auto& step : refused.cycle) {
    write(step, *out.add_cycle());
  }
}

void write(const core::Outcome& outcome, v1::Outcome& out) {
  std::visit(OutcomeWriter(out), outcome);
}

void write(const Error& error, v1::Outcome& out) {
  out.mutable_refused()->set_code(code_of(error.code));
  out.mutable_refused()->set_detail(error.detail);
}

void write(const core::Event& event, PreviousRecord previous, v1::Event& out) {
  const auto change = change_of(event);
  out.set_type(change);
  // Protobuf enum values are one larger: 0 is UNSPECIFIED.
  static_assert(v1::EVENT_TYPE_DOWNGRADED == static_cast<int>(core::last_event_type) + 1);
  out.set_cause(static_cast<v1::EventType>(static_cast<int>(event.type) + 1));
  out.set_revision(event.revision.get());
  // Empty except for forced releases.
  out.set_operator_name(event.operator_name);
  out.set_reason(event.reason);
  if (change != v1::CHANGE_DELETE) {
    write_record(event, *out.mutable_record());
    return;
  }
  // A delete event names the lock and the revision; everything else is in `previous`.
  out.mutable_record()->set_key(event.item.name);
  out.mutable_record()->set_mod_revision(event.revision.get());
  if (previous == PreviousRecord::include) {
    write_record(event, *out.mutable_previous());
  }
}

}  // namespace tenure::wire
