#include <algorithm>
#include <utility>

#include "support/core/reference.hpp"

namespace tenure::core::model {
namespace {

std::size_t bytes_of_items(std::span<const Item> items) {
  std::size_t bytes = 0;
  for (const auto& item : items) {
    bytes += item.name.size() + (std::holds_alternative<Whole>(item.claim) ? 128 : 512);
    if (const auto* keys = std::get_if<Keys>(&item.claim)) {
      bytes += 2 * keys->range.start().size();
      bytes += keys->range.end() ? 2 * keys->range.end()->size() : 0;
    }
  }
  return bytes;
}

template <class Record>
std::size_t bytes_of_record(const Record& record) {
  return bytes_of_items(record.items) + record.owner.size() + record.metadata.size();
}

}  // namespace

std::size_t bytes_of_lease(std::string_view client, std::string_view address,
                           std::string_view user) {
  return 384 + client.size() + address.size() + user.size();
}

std::size_t bytes_of_wait(const Wait& wait) {
  return 512 + bytes_of_record(wait);
}

std::size_t bytes_of_hold(const Wait& wait) {
  return 192 + bytes_of_record(wait);
}

std::size_t Reference::bytes_of(const std::optional<std::string>& user) const {
  const auto counts = [&](LeaseId lease) { return !user || leases_.at(lease).user == *user; };
  std::size_t bytes = 0;
  for (const auto& [id, lease] : leases_) {
    bytes += counts(id) ? bytes_of_lease(lease.client, lease.address, lease.user) : 0;
  }
  for (const auto& hold : holds_) {
    bytes += counts(hold.lease) ? 192 + bytes_of_record(hold) : 0;
  }
  for (const auto& wait : waits_) {
    bytes += counts(wait.lease) ? bytes_of_wait(wait) : 0;
  }
  return bytes;
}

bool Reference::has_room(const std::string& user, std::size_t bytes) const {
  return version_ < version_2 || (bytes_of(std::nullopt) + bytes <= bytes_max_ &&
                                  (user.empty() || bytes_of(user) + bytes <= bytes_per_user_max_));
}

Outcome Reference::apply(const SetLimits& command) {
  if (command.limits.state_bytes_max == 0 || command.limits.state_bytes_per_user_max == 0) {
    return refused(Errc::invalid_argument);
  }
  if (version_ >= version_2) {
    bytes_max_ = command.limits.state_bytes_max;
    bytes_per_user_max_ = command.limits.state_bytes_per_user_max;
  }
  return Done{};
}

Outcome Reference::apply(const SetClusterVersion& command) {
  if (command.version < version_1 || command.version > version_2) {
    return refused(Errc::invalid_argument);
  }
  if (command.version < version_2 && is_restoring()) {
    return refused(Errc::unavailable);
  }
  version_ = command.version;
  if (version_ < version_2) {
    bytes_max_ = Limits{}.state_bytes_max;
    bytes_per_user_max_ = Limits{}.state_bytes_per_user_max;
    for (auto& [id, lease] : leases_) {
      lease.user.clear();
    }
  }
  return Done{};
}

void Reference::restore(ClusterTime longest_ttl) {
  version_ = std::max(version_, version_2);
  for (const auto& wait : std::exchange(waits_, {})) {
    leases_.at(wait.lease).answers.erase(wait.request);
  }
  restored_until_ = now_ + longest_ttl;
  for (auto& [id, lease] : leases_) {
    lease.deadline = now_ + lease.ttl;
    unconfirmed_.insert(id);
  }
}

void Reference::let_time_pass() {
  std::set<LeaseId> over;
  for (const auto& [id, lease] : leases_) {
    if (lease.deadline <= now_) {
      over.insert(id);
    }
  }
  const bool is_restored = restored_until_ && *restored_until_ <= now_;
  if (is_restored) {
    over.merge(std::exchange(unconfirmed_, {}));
    restored_until_.reset();
    for (const auto& wait : waits_) {
      touch(wait.items);
    }
  }
  if (!over.empty() || is_restored) {
    ++revision_;
    end(over, EventType::expired);
  }
}

Outcome Reference::apply(const ConfirmHolds& command) {
  const Renewed lost{{{.id = command.lease, .ttl = std::nullopt}}};
  const auto it = leases_.find(command.lease);
  if (it == leases_.end()) {
    return lost;
  }
  if (is_unconfirmed(command.lease)) {
    if (!has_holds(command)) {
      end({command.lease}, EventType::expired);
      return lost;
    }
    unconfirmed_.erase(command.lease);
    std::erase_if(holds_, [&](const Hold& hold) {
      return hold.lease == command.lease && std::ranges::count(command.tokens, hold.token) == 0;
    });
    for (auto& hold : holds_) {
      if (hold.lease == command.lease) {
        hold.count = static_cast<std::uint32_t>(std::ranges::count(command.tokens, hold.token));
      }
    }
  }
  it->second.deadline = now_ + it->second.ttl;
  return Renewed{{{.id = command.lease, .ttl = it->second.ttl}}};
}

bool Reference::has_holds(const ConfirmHolds& command) const {
  return std::ranges::all_of(command.tokens, [&](FencingToken token) {
    const auto hold = std::ranges::find(holds_, token, &Hold::token);
    return hold != holds_.end() && hold->lease == command.lease &&
           (hold->items.size() == 1 || std::ranges::count(command.tokens, token) == 1);
  });
}

}  // namespace tenure::core::model
