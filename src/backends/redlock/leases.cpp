#include <algorithm>

#include "backends/fan_in.hpp"
#include "backends/redlock/locks.hpp"
#include "sys/parse_number.hpp"
#include "sys/take_until.hpp"

namespace tenure::backends::redlock {
namespace {

/// Lease and request of a member id.
RequestKey request_key_of(std::string_view member) {
  const auto lease = sys::take_until(member, '.');
  return {.lease = LeaseId{sys::parse_number<std::uint64_t>(lease, 16).value_or(0)},
          .request = RequestId{sys::parse_number<std::uint64_t>(member).value_or(0)}};
}

/// Holder in a reply of holder.lua.
Holder holder_from(const redis::Reply& reply) {
  const auto token = sys::parse_number<std::uint64_t>(reply.text_at(1)).value_or(0);
  auto label = reply.text_at(2);
  const auto owner = sys::take_until(label, '\n');
  return {.owner = std::string(owner),
          .token = FencingToken{token},
          .lease = request_key_of(reply.text_at(0)).lease,
          .metadata = std::string(label)};
}

/// Holder that has a quorum, or could have one together with the servers that did not reply.
std::vector<Holder> with_most_votes(const std::vector<Holder>& reported, const VoteTally& count) {
  const auto votes = [&](const Holder& holder) {
    return static_cast<std::size_t>(std::ranges::count(reported, holder.lease, &Holder::lease));
  };
  // A server may report a larger token of a late vote; the token that most servers report is the
  // agreed one.
  const auto agreeing = [&](const Holder& holder) {
    return std::ranges::count(reported, holder.token, &Holder::token);
  };
  const Holder* most = nullptr;
  for (const auto& holder : reported) {
    if (votes(holder) + count.failed() >= count.quorum() &&
        (most == nullptr ||
         std::pair(votes(holder), agreeing(holder)) > std::pair(votes(*most), agreeing(*most)))) {
      most = &holder;
    }
  }
  return most == nullptr ? std::vector<Holder>() : std::vector<Holder>{*most};
}

}  // namespace

/// Hold whose votes are being extended.
struct Locks::Extension {
  /// Specification of the acquire request.
  std::shared_ptr<const AcquireSpec> spec{};
  /// Member id of the acquisition.
  std::string member{};
  /// Fencing token.
  FencingToken token{};
  /// New TTL.
  std::chrono::milliseconds ttl{};
  /// A quorum has extended its votes.
  bool is_won = false;
  /// Servers on which no acquisition has the vote.
  std::vector<std::size_t> without_vote{};
};

void Locks::extend(const Held& held, std::chrono::milliseconds ttl, RequestId change,
                   std::move_only_function<void(ExtendResult)> done) {
  const auto extension = std::make_shared<Extension>(
      Extension{.spec = held.spec, .member = held.member, .token = held.token, .ttl = ttl});
  const auto command = encoder_.extend(*held.spec, held.member, ttl, change);
  quorum_.call(
      {.command = [&](std::size_t) { return std::optional(command); },
       .classify =
           [this, extension](std::size_t server, const Result<QuorumClient::Response>& answer) {
             if (!answer) {
               return Verdict::failed;
             }
             if (answer->reply.number == 3 && extension->is_won) {
               restore_vote(*extension, server);
             } else if (answer->reply.number == 3) {
               extension->without_vote.push_back(server);
             }
             return answer->reply.number == 1 ? Verdict::yes : Verdict::no;
           },
       .timeout = timeout_for(ttl),
       .until = QuorumClient::Call::Until::refused},
      [this, extension, done = std::move(done)](const VoteTally& count) mutable {
        extension->is_won = count.is_won();
        if (extension->is_won) {
          for (const auto server : extension->without_vote) {
            restore_vote(*extension, server);
          }
        }
        done(count.is_won()       ? ExtendResult::yes
             : count.is_refused() ? ExtendResult::lost
                                  : ExtendResult::unknown);
      });
}

/// A server that restarted empty, or did not respond during the vote, gets the vote of the hold
/// again while a quorum certainly has it. Otherwise the next server to restart could end the hold.
void Locks::restore_vote(const Extension& extension, std::size_t server) {
  const auto [lease, request] = request_key_of(extension.member);
  const auto it = leases_.find(lease);
  if (it == leases_.end() || !it->second.holds.contains(request)) {
    // Released in between.
    return;
  }
  quorum_.send_to(server, vote_command_for(server,
                                           encoder_.vote({.spec = *extension.spec,
                                                          .member = extension.member,
                                                          .ttl = extension.ttl,
                                                          .token = extension.token.get()}),
                                           extension.ttl));
}

void Locks::renew(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done) {
  const auto renewal =
      std::make_shared<FanIn<Renewed>>(std::move(done), Renewed(leases.size(), true));
  const auto now = sys::BootClock::now();
  for (std::size_t index = 0; index < leases.size(); ++index) {
    const auto it = leases_.find(leases[index]);
    if (it == leases_.end()) {
      mark_lost(*renewal, index);
      continue;
    }
    auto& lease = it->second;
    lease.touched = now;
    for (const auto& [request, held] : lease.holds) {
      renewal->add();
      extend(held, lease.ttl, RequestId{},
             [this, renewal, index, id = leases[index], request](ExtendResult extended) {
               // A hold that was released in between is not lost.
               if (is_held(id, request) && extended == ExtendResult::lost) {
                 mark_lost(*renewal, index);
               } else if (is_held(id, request) && extended == ExtendResult::unknown) {
                 renewal->fail(no_quorum_error());
               }
               renewal->part_done();
             });
    }
  }
  renewal->part_done();
}

bool Locks::is_held(LeaseId lease, RequestId request) const {
  const auto found = leases_.find(lease);
  return found != leases_.end() && found->second.holds.contains(request);
}

void Locks::set_ttl(const TtlRequest& request, Backend::Done<void> done) {
  const auto it = leases_.find(request.lease);
  if (it == leases_.end()) {
    done(fail(Errc::lease_lost, "the lease has ended; request a new one"));
    return;
  }
  auto& lease = it->second;
  lease.ttl = request.ttl;
  lease.touched = sys::BootClock::now();
  lease.tracking = request.tracking;
  const auto change = std::make_shared<FanIn<void>>(
      [this, request, done = std::move(done)](Result<void> changed) mutable {
        if (request.tracking == LeaseTracking::ended) {
          untrack(request.lease);
        }
        done(std::move(changed));
      });
  for (const auto& [acquired, held] : lease.holds) {
    change->add();
    extend(held, request.ttl, request.request, [this, change](ExtendResult extended) {
      if (extended == ExtendResult::lost) {
        change->fail({.code = Errc::lease_lost, .detail = "a quorum of servers lost the lock"});
      } else if (extended == ExtendResult::unknown && change->result()) {
        change->fail(no_quorum_error());
      }
      change->part_done();
    });
  }
  change->part_done();
}

void Locks::untrack(LeaseId id) {
  const auto lease = leases_.extract(id);
  if (!lease) {
    return;
  }
  for (const auto& [request, held] : lease.mapped().holds) {
    hold_ended(held.spec->items.front().name);
  }
}

// Release.

void Locks::release(const ReleaseRequest& request, Backend::Done<void> done) {
  Held held{.spec = request.spec,
            .member = member_of(request.lease, request.acquired),
            .token = request.token};
  const auto lease = leases_.find(request.lease);
  bool was_known = false;
  bool was_refused = false;
  if (lease != leases_.end()) {
    const auto it = lease->second.holds.find(request.acquired);
    was_known = it != lease->second.holds.end();
    was_refused = was_known && it->second.was_refused;
    held.ttl = was_known ? it->second.ttl : held.ttl;
    lease->second.holds.erase(request.acquired);
  }
  release_votes(held, was_refused ? CommandEncoder::Waits::no_longer : CommandEncoder::Waits::still,
                std::move(done));
  if (was_known) {
    hold_ended(held.spec->items.front().name);
  }
}

void Locks::release_votes(const Held& held, CommandEncoder::Waits waits, Backend::Done<void> done) {
  const auto command = encoder_.release({.spec = *held.spec,
                                         .member = held.member,
                                         .token = held.token,
                                         .ttl = held.ttl,
                                         .waits = waits});
  const auto name = held.spec->items.front().name;
  quorum_.call({.command = [&](std::size_t) { return std::optional(command); },
                .classify =
                    [this, name](std::size_t, const Result<QuorumClient::Response>& answer) {
                      if (!answer) {
                        return Verdict::failed;
                      }
                      const auto result = answer->reply.number;
                      if (const auto it = queues_.find(name); result == 2 && it != queues_.end()) {
                        it->second.yields_to_others = true;
                      }
                      const bool is_ours =
                          result == 1 || result == 2 || (result == 3 && answer->is_retry);
                      return is_ours ? Verdict::yes : Verdict::no;
                    },
                .timeout = options_.deployment.node_timeout,
                .until = QuorumClient::Call::Until::refused,
                .recipients = QuorumClient::Call::Recipients::all},
               [this, done = std::move(done)](const VoteTally& count) mutable {
                 if (count.is_won()) {
                   done({});
                 } else if (count.is_refused()) {
                   done(fail(Errc::not_held));
                 } else {
                   done(std::unexpected(no_quorum_error()));
                 }
               });
}

void Locks::hold_ended(const std::string& name) {
  const auto it = queues_.find(name);
  if (it != queues_.end() && it->second.held > 0) {
    --it->second.held;
    start_next_attempt(name);
  }
}

void Locks::revoke(LeaseId id, Backend::Done<void> done) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    done({});
    return;
  }
  auto lease = std::move(it->second);
  leases_.erase(it);
  for (const auto request : lease.waits) {
    const RequestKey key{.lease = id, .request = request};
    if (const auto wait = waits_.find(key); wait != waits_.end()) {
      withdraw_wait(wait->second);
    }
    settle(key, fail(Errc::lease_lost, "the lease of this wait ended; acquire again"));
  }
  const auto parts = std::make_shared<FanIn<void>>(std::move(done));
  for (const auto& [request, held] : lease.holds) {
    parts->add();
    release_votes(held, CommandEncoder::Waits::no_longer, [parts](const Result<void>& answer) {
      if (!answer && answer.error() != Errc::not_held) {
        parts->fail(answer.error());
      }
      parts->part_done();
    });
  }
  for (const auto& [request, held] : lease.holds) {
    hold_ended(held.spec->items.front().name);
  }
  parts->part_done();
}

/// An operator releases the lock on each server; the hold ends when a quorum has reported it.
void Locks::hold_force_released(std::string_view member) {
  const auto [id, request] = request_key_of(member);
  const auto lease = leases_.find(id);
  if (lease == leases_.end()) {
    return;
  }
  const auto it = lease->second.holds.find(request);
  if (it == lease->second.holds.end() ||
      ++it->second.force_release_notices < options_.deployment.quorum()) {
    return;
  }
  const auto name = it->second.spec->items.front().name;
  lease->second.holds.erase(it);
  if (listener_ != nullptr) {
    listener_->hold_force_released(id, request);
  }
  hold_ended(name);
}

void Locks::end() {
  listener_ = nullptr;
  is_ending_ = true;
  std::vector<RequestKey> keys;
  for (const auto& [key, wait] : waits_) {
    keys.push_back(key);
  }
  for (const auto& key : keys) {
    withdraw_wait(waits_.at(key));
    settle(key, std::unexpected(client_closed()));
  }
  std::vector<LeaseId> ids;
  for (const auto& [id, lease] : leases_) {
    if (lease.tracking == LeaseTracking::kept) {
      ids.push_back(id);
    }
  }
  for (const auto id : ids) {
    revoke(id, [](const Result<void>&) {});
  }
}

// Inspection.

void Locks::holders(const std::string& name, Backend::Done<std::vector<Holder>> done) {
  const auto reported = std::make_shared<std::vector<Holder>>();
  const auto command = encoder_.holder(name);
  quorum_.call({.command = [&](std::size_t) { return std::optional(command); },
                .classify =
                    [reported](std::size_t, const Result<QuorumClient::Response>& answer) {
                      if (answer && !answer->reply.elements.empty()) {
                        reported->push_back(holder_from(answer->reply));
                      }
                      return answer ? Verdict::yes : Verdict::failed;
                    },
                .timeout = options_.deployment.node_timeout,
                .until = QuorumClient::Call::Until::all},
               [this, reported, done = std::move(done)](const VoteTally& count) mutable {
                 if (!count.is_won()) {
                   done(std::unexpected(no_quorum_error()));
                   return;
                 }
                 done(with_most_votes(*reported, count));
               });
}

}  // namespace tenure::backends::redlock
