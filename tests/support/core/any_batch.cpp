#include "support/core/any_batch.hpp"

#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenure::core::model {
namespace {

std::string any_text() {
  return *rc::gen::arbitrary<std::string>();
}

template <class Id>
Id any_id() {
  return Id{*rc::gen::arbitrary<std::uint64_t>()};
}

ClusterTime any_time() {
  return ClusterTime{*rc::gen::arbitrary<std::int64_t>()};
}

/// One of the first `count` values of an enumeration.
template <class Enum>
Enum any_of_first(int count) {
  return static_cast<Enum>(*rc::gen::inRange(0, count));
}

LockMode any_mode() {
  return *rc::gen::elementOf(all_lock_modes);
}

BytesRange any_range() {
  const auto start = any_text();
  const auto range = BytesRange::half_open(start, any_text());
  return range.value_or(BytesRange::at_least(start));
}

Item any_item() {
  Item item{.name = any_text(), .claim = {}};
  switch (*rc::gen::inRange(0, 3)) {
    case 0: item.claim = Whole{any_mode()}; break;
    case 1:
      item.claim = Permits{.capacity = *rc::gen::arbitrary<std::uint32_t>(),
                           .wanted = *rc::gen::arbitrary<std::uint32_t>()};
      break;
    default: item.claim = Keys{.range = any_range(), .mode = any_mode()}; break;
  }
  return item;
}

Acquire any_acquire() {
  Acquire command{.lease = any_id<LeaseId>(), .request = any_id<RequestId>()};
  command.items.resize(*rc::gen::inRange<std::size_t>(0, 5));
  for (auto& item : command.items) {
    item = any_item();
  }
  command.queue = any_of_first<Queue>(2);
  command.self_conflict = any_of_first<SelfConflict>(3);
  command.owner = any_text();
  command.metadata = any_text();
  return command;
}

Release any_release() {
  Release command{.lease = any_id<LeaseId>(), .request = any_id<RequestId>()};
  switch (*rc::gen::inRange(0, 3)) {
    case 0: command.what = any_id<FencingToken>(); break;
    case 1: command.what = Target{.name = any_text()}; break;
    default: command.what = Target{.name = any_text(), .range = any_range()}; break;
  }
  return command;
}

ForceRelease any_force_release() {
  ForceRelease command{.resource = {.name = any_text(), .kind = any_of_first<ResourceKind>(2)}};
  if (*rc::gen::arbitrary<bool>()) {
    command.token = any_id<FencingToken>();
  }
  command.operator_name = any_text();
  command.reason = any_text();
  return command;
}

RenewLeases any_renewal() {
  RenewLeases command;
  command.leases.resize(*rc::gen::inRange<std::size_t>(0, 20));
  for (auto& lease : command.leases) {
    lease = any_id<LeaseId>();
  }
  return command;
}

SetLimits any_limits() {
  SetLimits command;
  for_each_limit(command.limits, [](std::string_view, auto& value) {
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, ClusterTime>) {
      value = any_time();
    } else {
      value = *rc::gen::arbitrary<Value>();
    }
  });
  return command;
}

ConfirmHolds any_confirmation() {
  ConfirmHolds command{.lease = any_id<LeaseId>()};
  command.tokens.resize(*rc::gen::inRange<std::size_t>(0, 20));
  for (auto& token : command.tokens) {
    token = any_id<FencingToken>();
  }
  return command;
}

/// Without what version 1 does not have.
Command in_version_1(Command command) {
  if (auto* lease = std::get_if<GrantLease>(&command)) {
    lease->user = {};
  } else if (auto* force = std::get_if<ForceRelease>(&command)) {
    force->operator_name = {};
    force->reason = {};
  } else if (auto* limits = std::get_if<SetLimits>(&command)) {
    limits->limits = at_version(limits->limits, version_1);
  } else if (std::holds_alternative<SetClusterVersion>(command) ||
             std::holds_alternative<ConfirmHolds>(command)) {
    return Tick{};
  }
  return command;
}

Command any_command() {
  switch (*rc::gen::inRange<std::size_t>(0, std::variant_size_v<Command>)) {
    case 0: return any_acquire();
    case 1: return any_release();
    case 2: return Abandon{.lease = any_id<LeaseId>(), .request = any_id<RequestId>()};
    case 3:
      return GrantLease{.id = any_id<LeaseId>(),
                        .request = any_id<RequestId>(),
                        .ttl = any_time(),
                        .client = any_text(),
                        .address = any_text(),
                        .user = any_text()};
    case 4: return any_renewal();
    case 5: return RevokeLease{any_id<LeaseId>()};
    case 7: return any_force_release();
    case 8: return Compact{any_id<Revision>()};
    case 9: return any_limits();
    case 10:
      return Downgrade{.lease = any_id<LeaseId>(),
                       .request = any_id<RequestId>(),
                       .token = any_id<FencingToken>(),
                       .mode = any_mode()};
    case 11:
      return SetTtl{.lease = any_id<LeaseId>(), .request = any_id<RequestId>(), .ttl = any_time()};
    case 12: return SetClusterVersion{any_id<ClusterVersion>()};
    case 13: return any_confirmation();
    default: return Tick{};
  }
}

}  // namespace

rc::Gen<Batch> any_batch() {
  return rc::gen::exec([] {
    Batch batch{.version = *rc::gen::elementOf(std::array{version_1, version_2}),
                .stamp = {.time = any_time(), .revision = any_id<Revision>()}};
    batch.commands.resize(*rc::gen::inRange<std::size_t>(0, 8));
    for (auto& command : batch.commands) {
      command = batch.version == version_1 ? in_version_1(any_command()) : any_command();
    }
    return batch;
  });
}

}  // namespace tenure::core::model
