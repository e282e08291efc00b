#include <algorithm>
#include <utility>

#include "backends/fan_in.hpp"
#include "backends/redis/locks.hpp"

namespace tenure::backends::redis {
namespace {

/// Maximum number of members that one command renews, to bound the time that the script blocks the
/// server.
constexpr std::size_t members_per_command_max = 256;

}  // namespace

/// Renewal of several leases. Their memberships are renewed by one command for each lock.
struct Locks::Renewal {
  /// Leases to renew.
  std::vector<LeaseId> leases;
  /// Whether the expiry may be shortened.
  Ttl ttl = Ttl::at_least;
  /// Commands without a reply. An error means that the outcome is unknown.
  FanIn<Renewed> parts;
};

void Locks::renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done, Ttl ttl) {
  FanIn<Renewed> parts(std::move(done), Renewed(leases.size(), true));
  const auto renewal = std::make_shared<Renewal>(
      Renewal{.leases = std::move(leases), .ttl = ttl, .parts = std::move(parts)});
  struct Group {
    std::shared_ptr<const AcquireSpec> spec;
    Members members;
  };
  absl::flat_hash_map<std::pair<std::string_view, std::uint32_t>, Group> groups;
  for (std::size_t index = 0; index < renewal->leases.size(); ++index) {
    const auto* const lease = memberships_.find(renewal->leases[index]);
    if (lease == nullptr) {
      mark_lost(renewal->parts, index);
      continue;
    }
    mark_waits_for_renewal(*lease, renewal->leases[index]);
    for (const auto& [member_key, membership] : lease->memberships) {
      if (!membership.is_confirmed) {
        // The reply is outstanding, so the server may not know the member yet.
        continue;
      }
      if (membership.spec->fairness == Fairness::barging) {
        renew_members(renewal, *membership.spec, membership.spec->min_replicas,
                      {{index, member_key.member}});
        continue;
      }
      // A waiter has no grant that replicas would have to know.
      const auto replicas =
          is_wait_only(renewal->leases[index], member_key) ? 0 : membership.spec->min_replicas;
      auto& group = groups[{member_key.name, replicas}];
      group.spec = membership.spec;
      group.members.emplace_back(index, member_key.member);
      if (group.members.size() == members_per_command_max) {
        renew_members(renewal, *group.spec, replicas, std::exchange(group.members, {}));
      }
    }
  }
  for (auto& [key, group] : groups) {
    if (!group.members.empty()) {
      renew_members(renewal, *group.spec, key.second, std::move(group.members));
    }
  }
  renewal->parts.part_done();
}

void Locks::renew_members(const std::shared_ptr<Renewal>& renewal, const AcquireSpec& spec,
                          std::uint32_t replicas, Members members) {
  const bool is_exact = renewal->ttl == Ttl::exact;
  std::vector<std::string> words;
  words.reserve(2 * members.size());
  for (const auto& [index, member] : members) {
    const auto ttl = std::to_string(memberships_.find(renewal->leases[index])->ttl.count());
    words.push_back(is_exact ? "=" + ttl : ttl);
    words.push_back(member);
  }
  renewal->parts.add();
  router_.run({.encoded = encoder_.renew(spec, words),
               .on_reply =
                   [this, renewal, name = spec.items.front().name,
                    members = std::move(members)](const Result<Command::Response>& answer) {
                     members_renewed(*renewal, name, members, answer);
                   },
               // A shorter TTL that arrives late would undo a later, longer one.
               .retry = is_exact ? Command::Retry::never : Command::Retry::until_timeout,
               // With min_replicas a renewal counts only if replicas have it. Otherwise a replica
               // that becomes the primary would let the hold expire before the client expects it.
               .replicas = replicas});
}

void Locks::members_renewed(Renewal& renewal, const std::string& name, const Members& members,
                            const Result<Command::Response>& answer) {
  if (!answer) {
    renewal.parts.fail(answer.error());
    renewal.parts.part_done();
    return;
  }
  const auto& states = answer->reply.text;
  bool is_grant_missed = false;
  for (std::size_t at = 0; at < members.size() && at < states.size(); ++at) {
    const auto& [index, member] = members[at];
    const MemberKey member_key{.name = name, .member = member};
    if (memberships_.find(renewal.leases[index], member_key) == nullptr) {
      // Released in between.
      continue;
    }
    if (states[at] != '0') {
      mark_renewed(renewal.leases[index], member_key);
    }
    if (states[at] == '0' && is_wait_only(renewal.leases[index], member_key)) {
      // A failover lost the wait. The lease loses nothing but the position; resend_waits() joins
      // the queue again.
      is_grant_missed = true;
    } else if (states[at] == '0') {
      mark_lost(renewal.parts, index);
    } else if (states[at] == '1') {
      is_grant_missed = is_grant_missed || has_queued_wait(renewal.leases[index], member_key);
    }
  }
  // A request waits here that the server counts as a holder, or does not know: a notification was
  // lost.
  if (is_grant_missed) {
    resend_waits();
  }
  renewal.parts.part_done();
}

void Locks::mark_waits_for_renewal(const LeaseMemberships::Lease& lease, LeaseId id) {
  for (const auto request : lease.waits) {
    const auto it = waits_.find(RequestKey{.lease = id, .request = request});
    if (it != waits_.end() && !it->second.is_queued) {
      it->second.needs_renewal = true;
    }
  }
}

void Locks::mark_renewed(LeaseId lease, const MemberKey& member_key) {
  for (const auto request : memberships_.find(lease)->waits) {
    const auto it = waits_.find(RequestKey{.lease = lease, .request = request});
    if (it != waits_.end() && it->second.member_key == member_key) {
      it->second.needs_renewal = false;
    }
  }
}

bool Locks::is_wait_only(LeaseId lease, const MemberKey& member_key) {
  return memberships_.find(lease, member_key)->uses == 1 && has_queued_wait(lease, member_key);
}

bool Locks::has_queued_wait(LeaseId lease, const MemberKey& member_key) {
  return std::ranges::any_of(memberships_.find(lease)->waits, [&](RequestId request) {
    const auto it = waits_.find(RequestKey{.lease = lease, .request = request});
    return it != waits_.end() && it->second.is_queued && it->second.member_key == member_key;
  });
}

void Locks::set_ttl(const TtlRequest& request, Backend::Done<void> done) {
  auto* const lease = memberships_.find(request.lease);
  if (lease == nullptr) {
    done(fail(Errc::lease_lost, "the lease has ended; request a new one"));
    return;
  }
  lease->ttl = request.ttl;
  lease->tracking = request.tracking;
  auto replied = [this, request, done = std::move(done)](const Result<Renewed>& renewed) mutable {
    if (request.tracking == LeaseTracking::ended) {
      static_cast<void>(take_lease(request.lease));
    }
    if (!renewed) {
      done(std::unexpected(renewed.error()));
    } else {
      done(renewed->front() ? Result<void>()
                            : fail(Errc::lease_lost, "the lease has ended; request a new one"));
    }
  };
  renew({request.lease}, std::move(replied), Ttl::exact);
}

void Locks::verify_holds() {
  auto leases = memberships_.all();
  renew(leases, [this, leases](const Result<Renewed>& renewed) {
    for (std::size_t index = 0; renewed && index < renewed->size(); ++index) {
      if (!(*renewed)[index] && listener_ != nullptr &&
          memberships_.find(leases[index]) != nullptr) {
        listener_->lease_lost(leases[index]);
      }
    }
  });
  router_.flush();
}

LeaseMemberships::Lease Locks::take_lease(LeaseId lease) {
  auto taken = memberships_.take(lease);
  for (const auto request : taken.waits) {
    settle({.lease = lease, .request = request},
           fail(Errc::lease_lost, "the lease of this wait ended; acquire again"));
  }
  return taken;
}

void Locks::revoke(LeaseId lease, Backend::Done<void> done) {
  const auto taken = take_lease(lease);
  const auto parts = std::make_shared<FanIn<void>>(std::move(done));
  for (const auto& [member_key, membership] : taken.memberships) {
    parts->add();
    router_.run({.encoded = encoder_.remove(*membership.spec, member_key.member),
                 .on_reply = [parts](const Result<Command::Response>& answer) {
                   if (!answer) {
                     parts->fail(answer.error());
                   }
                   parts->part_done();
                 }});
  }
  parts->part_done();
}

void Locks::end() {
  listener_ = nullptr;
  timers_.clear();
  std::vector<RequestKey> keys;
  for (const auto& [key, wait] : waits_) {
    keys.push_back(key);
  }
  for (const auto& key : keys) {
    const auto* const lease = memberships_.find(key.lease);
    if (lease != nullptr && lease->tracking == LeaseTracking::ended) {
      // To remove the wait of an upgrade would remove the hold that has to stay.
      settle(key, std::unexpected(client_closed()));
      continue;
    }
    const auto member_key = waits_.at(key).member_key;
    const auto spec = waits_.at(key).request.spec;
    settle(key, std::unexpected(client_closed()));
    router_.run(
        {.encoded = encoder_.remove(*spec, member_key.member), .on_reply = [](const auto&) {}});
  }
  for (const auto lease : memberships_.all()) {
    if (memberships_.find(lease)->tracking == LeaseTracking::kept) {
      revoke(lease, [](const Result<void>&) {});
    }
  }
  router_.flush();
}

}  // namespace tenure::backends::redis
