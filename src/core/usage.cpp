#include "core/usage.hpp"

#include "core/state.hpp"

namespace tenure::core {

std::size_t bytes_of(std::span<const Item> items) noexcept {
  std::size_t bytes = 0;
  for (const auto& item : items) {
    const bool is_whole = std::holds_alternative<Whole>(item.claim);
    bytes += item.name.size() + (is_whole ? bytes_per_name : bytes_per_range);
    if (const auto* keys = std::get_if<Keys>(&item.claim)) {
      // Stored twice: in the item and in the index of ranges.
      bytes +=
          2 * (keys->range.start().size() + (keys->range.end() ? keys->range.end()->size() : 0));
    }
  }
  return bytes;
}

std::size_t bytes_of(const Hold& hold) noexcept {
  return bytes_per_hold + bytes_of(std::span(hold.items)) + hold.owner.size() +
         hold.metadata.size();
}

std::size_t bytes_of(const Wait& wait) noexcept {
  return bytes_per_wait + bytes_of(std::span(wait.items)) + wait.owner.size() +
         wait.metadata.size();
}

std::size_t bytes_of(const Refused& refused) noexcept {
  auto bytes = refused.error.detail.size();
  for (const auto& step : refused.cycle) {
    bytes += bytes_per_cycle_step + step.owner.size() + step.resource.name.size();
  }
  return bytes;
}

std::size_t bytes_of(const Lease& lease) noexcept {
  return bytes_per_lease + lease.client.size() + lease.address.size() + lease.user.size();
}

Bytes Usage::of_user(std::string_view user) const {
  const auto it = users_.find(user);
  return it == users_.end() ? Bytes{} : it->second;
}

// Users without bytes have no entry, so that two states with the same leases are equal.
void Usage::add(std::string_view user, const Bytes& bytes) {
  total_ += bytes;
  if (user.empty()) {
    return;
  }
  if (const auto it = users_.find(user); it != users_.end()) {
    it->second += bytes;
  } else {
    users_.emplace(user, bytes);
  }
}

void Usage::remove(std::string_view user, const Bytes& bytes) {
  total_ -= bytes;
  const auto it = users_.find(user);
  if (it == users_.end()) {
    return;
  }
  it->second -= bytes;
  if (it->second == Bytes{}) {
    users_.erase(it);
  }
}

Bytes count_bytes(const State& state, const Lease& lease) {
  return {.records = bytes_of(lease) + state.locks.owned(lease.id).bytes,
          .answers = lease.history.finished_bytes()};
}

void recount_bytes(State& state) {
  state.leases.clear_usage();
  for (const auto id : state.leases.all().keys()) {
    state.leases.set_bytes(*state.leases.edit(id), count_bytes(state, *state.leases.find(id)));
  }
}

}  // namespace tenure::core
