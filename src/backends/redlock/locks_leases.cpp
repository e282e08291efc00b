// Having a lock, and giving it back: renewals, another ttl, releases, ends of leases. locks.cpp has
// how one gets it.

#include <algorithm>
#include <charconv>

#include "backends/redlock/locks.hpp"

namespace tenure::backends::redlock {
namespace {

std::uint64_t number_from(std::string_view text, int base = 10) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

RequestKey acquisition_of(std::string_view member) {
  const auto dot = std::min(member.find('.'), member.size());
  return {.lease = LeaseId{number_from(member.substr(0, dot), 16)},
          .request = RequestId{number_from(member.substr(std::min(dot + 1, member.size())))}};
}

Holder holder_from(const redis::Reply& reply) {
  const auto label = reply.text_at(2);
  const auto line = std::min(label.find('\n'), label.size());
  return {.owner = std::string(label.substr(0, line)),
          .token = FencingToken{number_from(reply.text_at(1))},
          .lease = acquisition_of(reply.text_at(0)).lease,
          .metadata = std::string(label.substr(std::min(line + 1, label.size())))};
}

/// The one who has a quorum, or may have it by those that do not answer.
std::vector<Holder> with_most_votes(const std::vector<Holder>& said, const VoteCount& count) {
  const auto votes = [&](const Holder& holder) {
    return static_cast<std::size_t>(std::ranges::count(said, holder.lease, &Holder::lease));
  };
  // Servers may know a larger token than ours, from a vote that came late.
  const auto agreeing = [&](const Holder& holder) {
    return std::ranges::count(said, holder.token, &Holder::token);
  };
  const Holder* most = nullptr;
  for (const auto& holder : said) {
    if (votes(holder) + count.failed() >= count.quorum() &&
        (most == nullptr ||
         std::pair(votes(holder), agreeing(holder)) > std::pair(votes(*most), agreeing(*most)))) {
      most = &holder;
    }
  }
  return most == nullptr ? std::vector<Holder>() : std::vector<Holder>{*most};
}

}  // namespace

// Renewing.

/// One hold whose votes are asked to last longer.
struct Locks::Extension {
  std::shared_ptr<const Ask> ask{};
  std::string member{};
  FencingToken token{};
  std::chrono::milliseconds ttl{};
  bool is_won = false;
  std::vector<std::size_t> without{};  ///< Servers where nobody has the vote.
};

void Locks::extend(const Held& held, std::chrono::milliseconds ttl, RequestId change,
                   std::move_only_function<void(Extended)> done) {
  const auto extension = std::make_shared<Extension>(
      Extension{.ask = held.ask, .member = held.member, .token = held.token, .ttl = ttl});
  const auto command = commands_.extend(*held.ask, held.member, ttl, change);
  ballots_.ask({.command = [&](std::size_t) { return std::optional(command); },
                .judge =
                    [this, extension](std::size_t server, const Result<Ballots::Answer>& answer) {
                      if (!answer) {
                        return Verdict::failed;
                      }
                      if (answer->reply.number == 3 && extension->is_won) {
                        refill(*extension, server);
                      } else if (answer->reply.number == 3) {
                        extension->without.push_back(server);
                      }
                      return answer->reply.number == 1 ? Verdict::yes : Verdict::no;
                    },
                .limit = limit_for(ttl),
                .until = Ballots::Question::Until::certain},
               [this, extension, done = std::move(done)](const VoteCount& count) mutable {
                 extension->is_won = count.is_won();
                 if (extension->is_won) {
                   for (const auto server : extension->without) {
                     refill(*extension, server);
                   }
                 }
                 done(count.is_won()       ? Extended::yes
                      : count.is_refused() ? Extended::lost
                                           : Extended::doubtful);
               });
}

/// A server that restarted empty, or was away when we were voted for, gets our vote while a quorum
/// has it for sure; else the next one to restart would end the lock.
void Locks::refill(const Extension& extension, std::size_t server) {
  const auto [lease, request] = acquisition_of(extension.member);
  const auto it = leases_.find(lease);
  if (it == leases_.end() || !it->second.holds.contains(request)) {
    return;  // given back meanwhile
  }
  ballots_.tell(server, vote_for(server,
                                 commands_.vote({.ask = *extension.ask,
                                                 .member = extension.member,
                                                 .ttl = extension.ttl,
                                                 .token = extension.token.get()}),
                                 extension.ttl));
}

struct Locks::Renewal {
  Renewed alive{};
  Backend::Done<Renewed> done{};
  bool is_doubtful = false;
  std::size_t parts = 1;  ///< Not answered; 1 for the asking itself.
};

void Locks::renew(const std::vector<LeaseId>& leases, Backend::Done<Renewed> done) {
  const auto renewal = std::make_shared<Renewal>();
  renewal->alive.assign(leases.size(), true);
  renewal->done = std::move(done);
  const auto part_done = [this](Renewal& all) {
    if (--all.parts > 0) {
      return;
    }
    all.is_doubtful ? all.done(std::unexpected(unreachable())) : all.done(std::move(all.alive));
  };
  const auto now = sys::BootClock::now();
  for (std::size_t index = 0; index < leases.size(); ++index) {
    const auto it = leases_.find(leases[index]);
    if (it == leases_.end()) {
      renewal->alive[index] = false;
      continue;
    }
    auto& lease = it->second;
    lease.touched = now;
    for (const auto& [request, held] : lease.holds) {
      ++renewal->parts;
      extend(held, lease.ttl, RequestId{},
             [this, renewal, part_done, index, id = leases[index], request](Extended extended) {
               const auto found = leases_.find(id);
               // What was given back meanwhile is nobody's loss.
               const bool is_held = found != leases_.end() && found->second.holds.contains(request);
               if (is_held && extended == Extended::lost) {
                 renewal->alive[index] = false;
               } else if (is_held && extended == Extended::doubtful) {
                 renewal->is_doubtful = true;
               }
               part_done(*renewal);
             });
    }
  }
  part_done(*renewal);
}

void Locks::set_ttl(const TtlRequest& request, Backend::Done<void> done) {
  const auto it = leases_.find(request.lease);
  if (it == leases_.end()) {
    done(fail(Errc::lease_lost, "the lease has ended; begin anew"));
    return;
  }
  auto& lease = it->second;
  lease.ttl = request.ttl;
  lease.touched = sys::BootClock::now();
  struct Parts {
    Backend::Done<void> done;
    Extended worst = Extended::yes;
    std::size_t left = 1;
  };
  const auto parts = std::make_shared<Parts>(Parts{.done = std::move(done)});
  const auto part_done = [this, parts] {
    if (--parts->left > 0) {
      return;
    }
    switch (parts->worst) {
      case Extended::yes: parts->done({}); break;
      case Extended::lost: parts->done(fail(Errc::lease_lost, "a quorum has forgotten it")); break;
      case Extended::doubtful: parts->done(std::unexpected(unreachable())); break;
    }
  };
  for (const auto& [acquired, held] : lease.holds) {
    ++parts->left;
    extend(held, request.ttl, request.request, [parts, part_done](Extended extended) {
      const bool is_worse = parts->worst == Extended::yes || extended == Extended::lost;
      parts->worst = is_worse && extended != Extended::yes ? extended : parts->worst;
      part_done();
    });
  }
  part_done();
}

// Giving back.

void Locks::release(const ReleaseRequest& request, Backend::Done<void> done) {
  Held held{.ask = request.ask,
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
  give_back(held, was_refused ? Commands::Waits::no_longer : Commands::Waits::still,
            std::move(done));
  if (was_known) {
    no_longer_held(held.ask->items.front().name);
  }
}

void Locks::give_back(const Held& held, Commands::Waits waits, Backend::Done<void> done) {
  const auto command = commands_.release({.ask = *held.ask,
                                          .member = held.member,
                                          .token = held.token,
                                          .ttl = held.ttl,
                                          .waits = waits});
  const auto name = held.ask->items.front().name;
  ballots_.ask(
      {.command = [&](std::size_t) { return std::optional(command); },
       .judge =
           [this, name](std::size_t, const Result<Ballots::Answer>& answer) {
             if (!answer) {
               return Verdict::failed;
             }
             const auto result = answer->reply.number;
             if (const auto it = contests_.find(name); result == 2 && it != contests_.end()) {
               it->second.shall_let_others = true;
             }
             const bool is_ours = result == 1 || result == 2 || (result == 3 && answer->is_retry);
             return is_ours ? Verdict::yes : Verdict::no;
           },
       .limit = terms_.servers.node_timeout,
       .until = Ballots::Question::Until::certain,
       .whom = Ballots::Question::Whom::everybody},
      [this, done = std::move(done)](const VoteCount& count) mutable {
        if (count.is_won()) {
          done({});
        } else if (count.is_refused()) {
          done(fail(Errc::not_held));
        } else {
          done(std::unexpected(unreachable()));
        }
      });
}

void Locks::no_longer_held(const std::string& name) {
  const auto it = contests_.find(name);
  if (it != contests_.end() && it->second.held > 0) {
    --it->second.held;
    go_on(name);
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
      leave(wait->second);
    }
    settle(key, fail(Errc::lease_lost, "the lease of this wait ended; ask again"));
  }
  struct Parts {
    Backend::Done<void> done;
    std::size_t left = 1;
    Result<void> result{};
  };
  const auto parts = std::make_shared<Parts>(Parts{.done = std::move(done)});
  const auto part_done = [parts] {
    if (--parts->left == 0) {
      parts->done(std::move(parts->result));
    }
  };
  for (const auto& [request, held] : lease.holds) {
    ++parts->left;
    give_back(held, Commands::Waits::no_longer, [parts, part_done](const Result<void>& answer) {
      if (!answer && answer.error() != Errc::not_held) {
        parts->result = answer;
      }
      part_done();
    });
  }
  for (const auto& [request, held] : lease.holds) {
    no_longer_held(held.ask->items.front().name);
  }
  part_done();
}

/// A server was told by an operator to take it away; when a quorum was, it is gone.
void Locks::taken(std::string_view member) {
  const auto [id, request] = acquisition_of(member);
  const auto lease = leases_.find(id);
  if (lease == leases_.end()) {
    return;
  }
  const auto it = lease->second.holds.find(request);
  if (it == lease->second.holds.end() || ++it->second.taken_heard < terms_.servers.quorum()) {
    return;
  }
  const auto name = it->second.ask->items.front().name;
  lease->second.holds.erase(it);
  if (listener_ != nullptr) {
    listener_->hold_taken(id, request);
  }
  no_longer_held(name);
}

void Locks::end() {
  listener_ = nullptr;
  is_ending_ = true;
  std::vector<RequestKey> keys;
  for (const auto& [key, wait] : waits_) {
    keys.push_back(key);
  }
  for (const auto& key : keys) {
    leave(waits_.at(key));
    settle(key, std::unexpected(client_closed()));
  }
  std::vector<LeaseId> ids;
  for (const auto& [id, lease] : leases_) {
    ids.push_back(id);
  }
  for (const auto id : ids) {
    revoke(id, [](const Result<void>&) {});
  }
}

// Looking.

void Locks::holders(const std::string& name, Backend::Done<std::vector<Holder>> done) {
  const auto said = std::make_shared<std::vector<Holder>>();
  const auto command = commands_.who(name);
  ballots_.ask({.command = [&](std::size_t) { return std::optional(command); },
                .judge =
                    [said](std::size_t, const Result<Ballots::Answer>& answer) {
                      if (answer && !answer->reply.elements.empty()) {
                        said->push_back(holder_from(answer->reply));
                      }
                      return answer ? Verdict::yes : Verdict::failed;
                    },
                .limit = terms_.servers.node_timeout,
                .until = Ballots::Question::Until::all},
               [this, said, done = std::move(done)](const VoteCount& count) mutable {
                 if (!count.is_won()) {
                   done(std::unexpected(unreachable()));
                   return;
                 }
                 done(with_most_votes(*said, count));
               });
}

}  // namespace tenure::backends::redlock
