#include "backends/tenured/known_holds.hpp"

#include <algorithm>

namespace tenure::backends::tenured {
namespace {

std::string resource_of(const v1::Acquire& acquire) {
  if (acquire.items().empty()) {
    return {};
  }
  const auto& item = acquire.items(0);
  // Names contain no zero byte, so it separates name and range.
  return item.has_keys() ? item.name() + std::string(1, 0) + item.keys().range().SerializeAsString()
                         : item.name();
}

}  // namespace

// A count above one with a new token is an upgrade of a known hold: the token is replaced.
void KnownHolds::granted(const v1::Acquire& acquire, const v1::Granted& granted) {
  auto& known = leases_[acquire.lease_id()];
  Known hold{
      .token = granted.fencing_token(), .count = granted.count(), .resource = resource_of(acquire)};
  auto it = std::ranges::find(known, hold.token, &Known::token);
  if (it == known.end() && hold.count > 1) {
    it = std::ranges::find(known, hold.resource, &Known::resource);
  }
  if (it == known.end()) {
    known.push_back(std::move(hold));
  } else {
    *it = std::move(hold);
  }
}

void KnownHolds::released(const v1::Release& release) {
  const auto lease = leases_.find(release.lease_id());
  if (lease == leases_.end()) {
    return;
  }
  const auto it = std::ranges::find(lease->second, release.fencing_token(), &Known::token);
  if (it != lease->second.end() && --it->count == 0) {
    erase(release.lease_id(), release.fencing_token());
  }
}

void KnownHolds::force_released(std::uint64_t lease, std::uint64_t token) {
  erase(lease, token);
}

void KnownHolds::erase(std::uint64_t lease, std::uint64_t token) {
  const auto it = leases_.find(lease);
  if (it == leases_.end()) {
    return;
  }
  std::erase_if(it->second, [&](const Known& known) { return known.token == token; });
  if (it->second.empty()) {
    leases_.erase(it);
  }
}

std::vector<std::uint64_t> KnownHolds::tokens(std::uint64_t lease) const {
  std::vector<std::uint64_t> tokens;
  if (const auto it = leases_.find(lease); it != leases_.end()) {
    for (const auto& known : it->second) {
      tokens.insert(tokens.end(), known.count, known.token);
    }
  }
  return tokens;
}

}  // namespace tenure::backends::tenured
