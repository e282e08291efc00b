#include <utility>

#include "core/lock_table.hpp"
#include "simulation/host.hpp"

namespace tenure::simulation {

using namespace server::raft;

void Host::asked(const Ask& ask) {
  if (!is_up()) {
    return;
  }
  if (const auto* command = std::get_if<core::Command>(&ask.what)) {
    propose(ask, *command);
  } else if (const auto* read = std::get_if<ReadName>(&ask.what)) {
    this->read(ask, read->name);
  } else {
    watch(ask, std::get<WatchFrom>(ask.what).start);
  }
}

bool Host::misbehaves(Mutant mutant, std::uint64_t one_in) {
  return world_.options().mutant == mutant && world_.chance().one_in(one_in);
}

void Host::propose(const Ask& ask, core::Command command) {
  if (std::holds_alternative<core::Release>(command) && misbehaves(Mutant::release_forgotten, 20)) {
    answer(ask, core::Outcome(core::Released{}));
    return;
  }
  enter(ask.client, [this, ask, command = std::move(command)](RaftStore& here, Time /*now*/) {
    const auto bytes = encoded_size(command);
    Proposal proposal{.command = command,
                      .decided =
                          [this, ask, command](Result<server::Decided> result) {
                            decided(ask, command, std::move(result));
                          },
                      .bytes = bytes};
    switch (here.proposal_queue().push(proposal)) {
      case ProposalQueue::PushResult::queued: return;
      case ProposalQueue::PushResult::queued_first: drain_soon(); return;
      case ProposalQueue::PushResult::full:
      case ProposalQueue::PushResult::closed:
        answer(ask, Error{.code = Errc::resource_exhausted, .detail = "too much is in flight"});
    }
  });
}

void Host::decided(const Ask& ask, const core::Command& command, Result<server::Decided> result) {
  if (!result) {
    answer(ask, std::move(result).error());
    return;
  }
  judge_.see_acknowledged(result->revision);
  if (std::holds_alternative<core::Queued>(result->outcome)) {
    wait(ask, std::get<core::Acquire>(command));
    if (misbehaves(Mutant::grant_doubled, 30)) {
      answer(ask,
             core::Outcome(core::Granted{.token = core::FencingToken{result->revision.get()}}));
      return;
    }
  }
  answer(ask, std::move(result->outcome));
}

void Host::wait(const Ask& ask, const core::Acquire& acquire) {
  static_cast<void>(serving_->waiters.attach(
      {.lease = acquire.lease, .request = acquire.request},
      [this, ask](const Result<core::Notice>& notice, core::Revision /*revision*/) {
        if (!notice) {
          answer(ask, notice.error());
          return;
        }
        std::visit([&](const auto& end) { answer(ask, core::Outcome(end)); }, notice->end);
      }));
}

void Host::read(const Ask& ask, const std::string& name) {
  enter(ask.client, [this, ask, name](RaftStore& here, Time now) {
    auto look = [this, ask, name](Result<server::View> view) {
      if (!view) {
        answer(ask, std::move(view).error());
        return;
      }
      Sight sight{.revision = view->state.revision};
      const auto* lock = view->state.locks.find({.name = name, .kind = core::PlaceKind::name});
      if (lock != nullptr) {
        sight.holders.assign(lock->holds().begin(), lock->holds().end());
      }
      answer(ask, std::move(sight));
    };
    if (world_.options().mutant == Mutant::read_unconfirmed) {
      here.peek(std::move(look), now);
    } else {
      here.read(std::move(look), now);
    }
  });
}

void Host::watch(const Ask& ask, core::Revision start) {
  enter(ask.client, [this, ask, start](RaftStore& here, Time now) {
    here.peek(
        [this, ask, start](Result<server::View> view) {
          if (view->log.leader == 0 || serving_->store->is_removed()) {
            // Nothing would ever come from here.
            answer(ask, Error{.code = Errc::unavailable, .detail = "follows nobody"});
            return;
          }
          auto stream = std::make_shared<Stream>();
          stream->ask = ask;
          const auto weak = std::weak_ptr(stream);
          auto added =
              serving_->hub.add({.key = "", .match = server::Match::prefix, .start = start},
                                view->state, [this, weak] {
                                  if (const auto there = weak.lock()) {
                                    tell_watcher(there);
                                  }
                                });
          if (!added) {
            answer(ask, WatchLost{});
            return;
          }
          if (const auto old = std::exchange(serving_->streams[ask.client], stream)) {
            serving_->hub.remove(old->watch);
          }
          stream->watch = *added;
          const auto known = view->state.revision;
          answer(ask, WatchBegan{.revision = start == core::Revision{}
                                                 ? known
                                                 : core::Revision{start.get() - 1}});
          if (stream->watch->has_events()) {
            tell_watcher(stream);
          }
        },
        now);
  });
}

void Host::tell_watcher(const std::shared_ptr<Stream>& stream) {
  while (stream->watch->has_events()) {
    auto events = stream->watch->take(16);
    if (misbehaves(Mutant::event_dropped, 50)) {
      events.erase(events.begin());
    }
    if (misbehaves(Mutant::event_doubled, 50)) {
      events.push_back(events.back());
    }
    answer(stream->ask, WatchEvents{.place = stream->sent++, .events = std::move(events)});
  }
  if (stream->watch->cancelled_at().has_value()) {
    answer(stream->ask, WatchLost{});
  }
}

void Host::answer(const Ask& ask, decltype(Answer::what) what) {
  const auto shared =
      std::make_shared<const Answer>(Answer{.number = ask.number,
                                            .from = endpoint_,
                                            .leader = serving_->store->position().leader,
                                            .what = std::move(what)});
  const auto deliver = [this, to = ask.client, shared] {
    directory_.askers.at(to)->answered(*shared);
  };
  if (std::holds_alternative<WatchEvents>(shared->what) ||
      std::holds_alternative<WatchBegan>(shared->what)) {
    network_.stream(endpoint_, ask.client, deliver);
  } else {
    network_.send(endpoint_, ask.client, deliver);
  }
}

}  // namespace tenure::simulation
