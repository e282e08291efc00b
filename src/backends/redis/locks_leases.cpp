#include <algorithm>
#include <utility>

#include "backends/redis/locks.hpp"

// Leases of a client: renewing them, and their end.

namespace tenure::backends::redis {
namespace {

/// Members of one lock that are renewed by one command.
constexpr std::size_t members_at_once = 256;

Error the_client_ends() {
  return {.code = Errc::unavailable, .detail = "the client ends"};
}

}  // namespace

/// One batch of leases, whose members are renewed by a command for each lock.
struct Locks::Renewal {
  std::vector<LeaseId> leases{};
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
  const auto renewal = std::make_shared<Renewal>();
  renewal->leases = std::move(leases);
  renewal->alive.assign(renewal->leases.size(), true);
  renewal->done = std::move(done);
  struct Group {
    std::shared_ptr<const Ask> ask;
    std::vector<std::pair<std::size_t, std::string>> members;
  };
  absl::flat_hash_map<std::pair<std::string_view, Fairness>, Group> groups;
  for (std::size_t index = 0; index < renewal->leases.size(); ++index) {
    const auto* const lease = places_.find(renewal->leases[index]);
    if (lease == nullptr) {
      renewal->alive[index] = false;
      continue;
    }
    for (const auto& [spot, place] : lease->places) {
      if (!place.is_confirmed) {
        continue;  // it is on its way, with all its time
      }
      if (place.ask->fairness == Fairness::barging) {
        renew_part(renewal, *place.ask, {{index, spot.member}});
        continue;
      }
      auto& group = groups[{spot.name, place.ask->fairness}];
      group.ask = place.ask;
      group.members.emplace_back(index, spot.member);
      if (group.members.size() == members_at_once) {
        renew_part(renewal, *group.ask, std::exchange(group.members, {}));
      }
    }
  }
  for (auto& [key, group] : groups) {
    if (!group.members.empty()) {
      renew_part(renewal, *group.ask, std::move(group.members));
    }
  }
  renewal->part_done();
}

void Locks::renew_part(const std::shared_ptr<Renewal>& renewal, const Ask& ask,
                       std::vector<std::pair<std::size_t, std::string>> members) {
  std::vector<std::string> words;
  words.reserve(2 * members.size());
  for (const auto& [index, member] : members) {
    words.push_back(std::to_string(places_.find(renewal->leases[index])->ttl.count()));
    words.push_back(member);
  }
  ++renewal->parts;
  pipeline_.run({.command = commands_.renew(ask, words),
                 .answered =
                     [this, renewal, name = ask.items.front().name,
                      members = std::move(members)](const Result<Errand::Answer>& answer) {
                       renewed_part(*renewal, name, members, answer);
                     },
                 .loss = Errand::Loss::fail});
}

void Locks::renewed_part(Renewal& renewal, const std::string& name,
                         const std::vector<std::pair<std::size_t, std::string>>& members,
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
    const Spot spot{.name = name, .member = member};
    if (places_.find(renewal.leases[index], spot) == nullptr) {
      continue;  // given back meanwhile
    }
    if (states[at] == '0') {
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

bool Locks::is_waited_for(LeaseId lease, const Spot& spot) {
  return std::ranges::any_of(places_.find(lease)->waits, [&](RequestId request) {
    const auto it = waits_.find({lease.get(), request.get()});
    return it != waits_.end() && it->second.is_queued && it->second.spot == spot;
  });
}

void Locks::revoke(LeaseId lease, Backend::Done<void> done) {
  auto taken = places_.take(lease);
  for (const auto request : taken.waits) {
    settle({lease.get(), request.get()},
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
    pipeline_.run({.command = commands_.remove(*place.ask, spot.member),
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
  alarms_.clear();
  std::vector<WaitKey> keys;
  for (const auto& [key, wait] : waits_) {
    keys.push_back(key);
  }
  for (const auto& key : keys) {
    const auto spot = waits_.at(key).spot;
    const auto ask = waits_.at(key).request.ask;
    settle(key, std::unexpected(the_client_ends()));
    pipeline_.run({.command = commands_.remove(*ask, spot.member), .answered = [](const auto&) {}});
  }
  for (const auto lease : places_.all()) {
    revoke(lease, [](const Result<void>&) {});
  }
  pipeline_.flush();
}

}  // namespace tenure::backends::redis
