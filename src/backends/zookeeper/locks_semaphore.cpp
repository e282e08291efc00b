#include <algorithm>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/errors.hpp"
#include "backends/zookeeper/locks.hpp"
#include "backends/zookeeper/node_value.hpp"
#include "backends/zookeeper/paths.hpp"

// Semaphores, by the recipe of Curator's InterProcessSemaphoreV2: a mutex (the gate) that admits
// one request at a time in FIFO order, and behind it one node per granted permit. Tenure creates
// its permit nodes only when all of them fit.

namespace tenure::backends::zookeeper {

void Locks::gate_acquired(Number number, Result<Grant> grant) {
  auto* const hold = find(number);
  if (hold == nullptr) {
    return;
  }
  if (!grant) {
    claim_decided(number, std::move(grant));
    return;
  }
  hold->owns_gate = true;
  hold->position = grant->position;
  count_permits(number);
}

// Only the request that owns the gate counts permits, so at most one list per semaphore is repeated
// on each change.
void Locks::count_permits(Number number) {
  auto& hold = *find(number);
  hold.awaits_permit = false;
  const auto watch = hold.queue == Queue::wait ? Connection::Watch::yes : Connection::Watch::no;
  session_of(hold)->list(leases_of(hold.folder), watch,
                         [this, number](const Reply& reply) { permits_counted(number, reply); });
}

void Locks::permits_counted(Number number, const Reply& reply) {
  auto* const hold = find(number);
  if (hold == nullptr || hold->is_releasing) {
    return;
  }
  if (reply.code != ZOK && reply.code != ZNONODE) {
    reject(number, error_from(reply.code, hold->folder));
    return;
  }
  if (!reply.names.empty() && !hold->is_capacity_known) {
    session_of(*hold)->get(leases_of(hold->folder) + '/' + std::string(reply.names.front()),
                           [this, number](const Reply& first) { check_capacity(number, first); });
    return;
  }
  if (reply.names.size() + hold->permits->wanted <= hold->permits->capacity) {
    take_permits(number);
  } else if (hold->queue == Queue::skip) {
    reject(number, {.code = Errc::would_block});
  } else {
    hold->position = std::max<std::size_t>(1, hold->position);
    hold->awaits_permit = true;
  }
}

/// Programs with different capacities would break the limit, so a mismatch is an error. Nodes of
/// other libraries do not carry a capacity.
void Locks::check_capacity(Number number, const Reply& reply) {
  auto* const hold = find(number);
  if (hold == nullptr || hold->is_releasing) {
    return;
  }
  if (reply.code != ZOK && reply.code != ZNONODE) {
    reject(number, error_from(reply.code, leases_of(hold->folder)));
    return;
  }
  const auto capacity = reply.code == ZOK ? read_value(reply.value).capacity : 0;
  if (capacity != 0 && capacity != hold->permits->capacity) {
    reject(number, {.code = Errc::invalid_argument,
                    .detail = '"' + hold->spec->items.front().name + "\": its capacity is " +
                              std::to_string(capacity) + ", not " +
                              std::to_string(hold->permits->capacity)});
    return;
  }
  hold->is_capacity_known = reply.code == ZOK;
  count_permits(number);
}

// The gate is held until all nodes exist, so no other request counts an intermediate state.
void Locks::take_permits(Number number) {
  auto& hold = *find(number);
  auto* const session = session_of(hold);
  for (std::uint32_t n = 0; n < hold.permits->wanted; ++n) {
    const auto claim = session->claim(
        {.folder = leases_of(hold.folder), .kind = Kind::lease, .value = value_of(hold)},
        [this, number](Result<Grant> grant) { permit_created(number, std::move(grant)); });
    hold.leases.push_back(claim);
    by_claim_[{hold.slot, claim}] = number;
  }
}

void Locks::permit_created(Number number, Result<Grant> grant) {
  auto* const hold = find(number);
  if (hold == nullptr || hold->is_releasing) {
    return;
  }
  if (!grant) {
    // The failed claim needs no special case: withdrawing a missing node is harmless.
    reject(number, grant.error());
    return;
  }
  if (++hold->permits_created < hold->leases.size()) {
    return;
  }
  // The last node has the largest token; later requests get larger ones. The grant is reported
  // after the gate is released, because until then a try_lock of another client would fail although
  // permits are free.
  by_claim_.erase({hold->slot, hold->claim});
  session_of(*hold)->withdraw(
      std::exchange(hold->claim, {}),
      [this, number, token = grant->token](const Result<void>&) { gate_released(number, token); });
}

void Locks::gate_released(Number number, FencingToken token) {
  auto* const hold = find(number);
  if (hold == nullptr || hold->is_releasing) {
    return;
  }
  hold->granted = Granted{.token = token, .queue_position = hold->position};
  settle(*hold, *hold->granted);
}

void Locks::permits_changed(Number slot, const std::string& folder) {
  std::vector<Number> waiting;
  for (const auto& [number, hold] : holds_) {
    if (hold->slot == slot && hold->awaits_permit && !hold->is_releasing &&
        leases_of(hold->folder) == folder) {
      waiting.push_back(number);
    }
  }
  for (const auto number : waiting) {
    count_permits(number);
  }
}

}  // namespace tenure::backends::zookeeper
