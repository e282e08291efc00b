#include <algorithm>
#include <utility>

#include "backends/redis/locks.hpp"

// Leases of a client: renewing them, and their end.

namespace tenure::backends::redis {
namespace {

/// Members of one lock that are renewed by one command.
constexpr std::size_t members_at_once = 256;

}  // namespace

/// One batch of leases, whose members are renewed by a command for each lock.
struct Locks::Renewal {
  std::vector<LeaseId> leases{};
  Ttl ttl = Ttl::at_least;
  Renewed alive{};
  Backend::Done<Renewed> done{};
  std::optional<Error> doubt{};
  std::size_t parts = 1;  ///< Not answered; 1 for the asking itself.

  void part_done() {
    if (--parts > 0) {
      return;
    }
    doubt ? done(std::unexpected(*doubt)) : done(std::move(alive));
  }
};

void Locks::renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done) {
  renew(std::move(leases), Ttl::at_least, std::move(done));
}

void Locks::renew(std::vector<LeaseId> leases, Ttl ttl, Backend::Done<Renewed> done) {
  const auto renewal = std::make_shared<Renewal>();
  renewal->ttl = ttl;
  renewal->leases = std::move(leases);
  renewal->alive.assign(renewal->leases.size(), true);
  renewal->done = std::move(done);
  struct Group {
    std::shared_ptr<const Ask> ask;
    Members members;
  };
  absl::flat_hash_map<std::pair<std::string_view, std::uint32_t>, Group> groups;
  for (std::size_t index = 0; index < renewal->leases.size(); ++index) {
    const auto* const lease = places_.find(renewal->leases[index]);
    if (lease == nullptr) {
      renewal->alive[index] = false;
      continue;
    }
    leave_behind(*lease, renewal->leases[index]);
    for (const auto& [spot, place] : lease->places) {
      if (!place.is_confirmed) {
        continue;  // nobody knows yet whether there is something to renew
      }
      if (place.ask->fairness == Fairness::barging) {
        renew_part(renewal, *place.ask, place.ask->min_replicas,
                   {{index, spot.member.to_string()}});
        continue;
      }
      // Who waits has nothing yet that replicas would have to know.
      const auto replicas =
          is_only_a_wait(renewal->leases[index], spot) ? 0 : place.ask->min_replicas;
      auto& group = groups[{spot.name, replicas}];
      group.ask = place.ask;
      group.members.emplace_back(index, spot.member.to_string());
      if (group.members.size() == members_at_once) {
        renew_part(renewal, *group.ask, replicas, std::exchange(group.members, {}));
      }
    }
  }
  for (auto& [key, group] : groups) {
    if (!group.members.empty()) {
      renew_part(renewal, *group.ask, key.second, std::move(group.members));
    }
  }
  renewal->part_done();
}

void Locks::renew_part(const std::shared_ptr<Renewal>& renewal, const Ask& ask,
                       std::uint32_t replicas, Members members) {
  const bool is_exact = renewal->ttl == Ttl::exact;
  std::vector<std::string> words;
  words.reserve(2 * members.size());
  for (const auto& [index, member] : members) {
    const auto ttl = std::to_string(places_.find(renewal->leases[index])->ttl.count());
    words.push_back(is_exact ? "=" + ttl : ttl);
    words.push_back(member);
  }
  ++renewal->parts;
  Errand errand{.command = commands_.renew(ask, words),
                .answered =
                    [this, renewal, name = ask.items.front().name,
                     members = std::move(members)](const Result<Errand::Answer>& answer) {
                      renewed_part(*renewal, name, members, answer);
                    },
                // A shorter one that arrives late would end what was lengthened since.
                .loss = is_exact ? Errand::Loss::once : Errand::Loss::fail};
  // What was renewed counts on as long as what was granted: a replica that did not hear of it would
  // let it end before we stop believing in it.
  replicas == 0 ? carrier_.run(std::move(errand))
                : carrier_.run_replicated(std::move(errand), replicas);
}

void Locks::renewed_part(Renewal& renewal, const std::string& name, const Members& members,
                         const Result<Errand::Answer>& answer) {
  if (!answer) {
    renewal.doubt = answer.error();
    renewal.part_done();
    return;
  }
  const auto& states = answer->reply.text;
  bool is_one_unheard = false;
  for (std::size_t at = 0; at < members.size() && at < states.size(); ++at) {
    const auto& [index, member] = members[at];
    const Spot spot{.name = name, .member = Member(member)};
    if (places_.find(renewal.leases[index], spot) == nullptr) {
      continue;  // given back meanwhile
    }
    if (states[at] != '0') {
      caught_up(renewal.leases[index], spot);
    }
    if (states[at] == '0' && is_only_a_wait(renewal.leases[index], spot)) {
      // Forgotten by a failover: it has nothing to lose but its place.
      is_one_unheard = true;
    } else if (states[at] == '0') {
      renewal.alive[index] = false;
    } else if (states[at] == '1') {
      is_one_unheard = is_one_unheard || is_waited_for(renewal.leases[index], spot);
    }
  }
  if (is_one_unheard) {
    // Somebody waits who holds already, or so it looks: a message was lost.
    ask_again();
  }
  renewal.part_done();
}

void Locks::leave_behind(const Places::Lease& lease, LeaseId id) {
  for (const auto request : lease.waits) {
    const auto it = waits_.find(RequestKey{.lease = id, .request = request});
    if (it != waits_.end() && !it->second.is_queued) {
      it->second.is_behind = true;
    }
  }
}

void Locks::caught_up(LeaseId lease, const Spot& spot) {
  for (const auto request : places_.find(lease)->waits) {
    const auto it = waits_.find(RequestKey{.lease = lease, .request = request});
    if (it != waits_.end() && it->second.spot == spot) {
      it->second.is_behind = false;
    }
  }
}

bool Locks::is_only_a_wait(LeaseId lease, const Spot& spot) {
  return places_.find(lease, spot)->uses == 1 && is_waited_for(lease, spot);
}

bool Locks::is_waited_for(LeaseId lease, const Spot& spot) {
  return std::ranges::any_of(places_.find(lease)->waits, [&](RequestId request) {
    const auto it = waits_.find(RequestKey{.lease = lease, .request = request});
    return it != waits_.end() && it->second.is_queued && it->second.spot == spot;
  });
}

void Locks::set_ttl(const TtlRequest& request, Backend::Done<void> done) {
  auto* const lease = places_.find(request.lease);
  if (lease == nullptr) {
    done(fail(Errc::lease_lost, "the lease has ended; begin anew"));
    return;
  }
  lease->ttl = request.ttl;
  renew({request.lease}, Ttl::exact,
        [done = std::move(done)](const Result<Renewed>& renewed) mutable {
          if (!renewed) {
            done(std::unexpected(renewed.error()));
          } else {
            done(renewed->front() ? Result<void>()
                                  : fail(Errc::lease_lost, "the lease has ended; begin anew"));
          }
        });
}

void Locks::check_holds() {
  auto leases = places_.all();
  renew(leases, [this, leases](const Result<Renewed>& renewed) {
    for (std::size_t index = 0; renewed && index < renewed->size(); ++index) {
      if (!(*renewed)[index] && listener_ != nullptr && places_.find(leases[index]) != nullptr) {
        listener_->lease_lost(leases[index]);
      }
    }
  });
  carrier_.flush();
}

void Locks::revoke(LeaseId lease, Backend::Done<void> done) {
  auto taken = places_.take(lease);
  for (const auto request : taken.waits) {
    settle({.lease = lease, .request = request},
           fail(Errc::lease_lost, "the lease of this wait ended; ask again"));
  }
  if (taken.places.empty()) {
    done({});
    return;
  }
  struct Parts {
    Backend::Done<void> done;
    std::size_t left;
    Result<void> result{};
  };
  const auto parts =
      std::make_shared<Parts>(Parts{.done = std::move(done), .left = taken.places.size()});
  for (const auto& [spot, place] : taken.places) {
    carrier_.run({.command = commands_.remove(*place.ask, spot.member),
                  .answered = [parts](const Result<Errand::Answer>& answer) {
                    if (!answer) {
                      parts->result = std::unexpected(answer.error());
                    }
                    if (--parts->left == 0) {
                      parts->done(std::move(parts->result));
                    }
                  }});
  }
}

void Locks::end() {
  listener_ = nullptr;
  timers_.clear();
  std::vector<RequestKey> keys;
  for (const auto& [key, wait] : waits_) {
    keys.push_back(key);
  }
  for (const auto& key : keys) {
    const auto spot = waits_.at(key).spot;
    const auto ask = waits_.at(key).request.ask;
    settle(key, std::unexpected(client_closed()));
    carrier_.run({.command = commands_.remove(*ask, spot.member), .answered = [](const auto&) {}});
  }
  for (const auto lease : places_.all()) {
    revoke(lease, [](const Result<void>&) {});
  }
  carrier_.flush();
}

}  // namespace tenure::backends::redis
