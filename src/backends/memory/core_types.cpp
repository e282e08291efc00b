#include "backends/memory/core_types.hpp"

#include <utility>
#include <variant>
#include <vector>

namespace tenure::backends {
namespace {

core::Item to_core(const Item& item) {
  if (const auto* permits = std::get_if<Permits>(&item.claim)) {
    return {.name = item.name,
            .claim = core::Permits{.capacity = permits->capacity, .wanted = permits->wanted}};
  }
  if (const auto* keys = std::get_if<Keys>(&item.claim)) {
    return {.name = item.name, .claim = core::Keys{.range = keys->range, .mode = keys->mode}};
  }
  return {.name = item.name, .claim = core::Whole{.mode = std::get<LockMode>(item.claim)}};
}

LockEventType from_core(core::EventType type) {
  switch (type) {
    case core::EventType::queued: return LockEventType::queued;
    case core::EventType::granted: return LockEventType::granted;
    case core::EventType::released: return LockEventType::released;
    case core::EventType::expired: return LockEventType::expired;
    case core::EventType::revoked: return LockEventType::revoked;
    case core::EventType::forced: return LockEventType::forced;
    case core::EventType::abandoned: return LockEventType::abandoned;
    case core::EventType::deadlock: return LockEventType::deadlock;
    case core::EventType::downgraded: return LockEventType::downgraded;
  }
  // Not reached: the switch is complete. Compilers require a value.
  return LockEventType::queued;
}

}  // namespace

core::Acquire to_core(const AcquireRequest& request) {
  std::vector<core::Item> items;
  items.reserve(request.spec->items.size());
  for (const auto& item : request.spec->items) {
    items.push_back(to_core(item));
  }
  return {.lease = request.lease,
          .request = request.request,
          .items = std::move(items),
          .queue = request.queue == Queue::wait ? core::Queue::wait : core::Queue::skip,
          .self_conflict = request.spec->self_conflict == SelfConflict::refuse
                               ? core::SelfConflict::refuse
                               : core::SelfConflict::reenter,
          .owner = request.spec->owner,
          .metadata = request.spec->metadata};
}

LockEvent from_core(const core::Event& event) {
  return {.revision = event.revision,
          .type = from_core(event.type),
          .name = event.item.name,
          .owner = event.owner,
          .token = event.token,
          .lease = event.lease,
          .metadata = event.metadata};
}

Error from_core(const core::Refused& refused) {
  auto error = refused.error;
  // A cycle of one is a self-deadlock, for which the core has written a detail.
  if (refused.cycle.size() > 1) {
    error.detail = "deadlock:";
    for (const auto& step : refused.cycle) {
      error.detail += " " + (step.owner.empty() ? std::to_string(step.lease.get()) : step.owner) +
                      " waits for " + std::string(step.resource.name) + ";";
    }
    // Replaces the semicolon after the last step.
    error.detail.back() = '.';
    error.detail += " Release all locks and retry";
  }
  return error;
}

Error lease_is_lost(LeaseId lease) {
  return {.code = Errc::lease_lost,
          .detail = "lease " + std::to_string(lease.get()) +
                    " has ended, and every lock held under it is lost"};
}

}  // namespace tenure::backends
