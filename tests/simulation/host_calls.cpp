#include <utility>

#include "core/lock_table.hpp"
#include "simulation/host.hpp"

namespace tenure::simulation {

using namespace server::raft;

void Host::handle_request(const Request& request) {
  if (!is_up()) {
    return;
  }
  if (const auto* command = std::get_if<core::Command>(&request.what)) {
    propose(request, *command);
  } else if (const auto* read = std::get_if<ReadRequest>(&request.what)) {
    this->read(request, read->name);
  } else {
    watch(request, std::get<WatchRequest>(request.what).start);
  }
}

bool Host::misbehaves(Mutant mutant, std::uint64_t one_in) {
  return world_.options().mutant == mutant && world_.random().one_in(one_in);
}

void Host::propose(const Request& request, core::Command command) {
  if (std::holds_alternative<core::Release>(command) && misbehaves(Mutant::release_forgotten, 20)) {
    reply(request, core::Outcome(core::Released{}));
    return;
  }
  enter(request.client, [this, request, command = std::move(command)](RaftStore& here,
                                                                      Time /*now*/) {
    const auto bytes = encoded_size(command);
    Proposal proposal{.command = command,
                      .decided =
                          [this, request, command](Result<server::Decided> result) {
                            decided(request, command, std::move(result));
                          },
                      .bytes = bytes};
    switch (here.proposal_queue().push(proposal)) {
      case ProposalQueue::PushResult::queued: return;
      case ProposalQueue::PushResult::queued_first: drain_soon(); return;
      case ProposalQueue::PushResult::full:
      case ProposalQueue::PushResult::closed:
        reply(request, Error{.code = Errc::resource_exhausted, .detail = "too much is in flight"});
    }
  });
}

void Host::decided(const Request& request, const core::Command& command,
                   Result<server::Decided> result) {
  if (!result) {
    reply(request, std::move(result).error());
    return;
  }
  checker_.on_acknowledged(result->revision);
  if (std::holds_alternative<core::Queued>(result->outcome)) {
    wait(request, std::get<core::Acquire>(command));
    if (misbehaves(Mutant::grant_doubled, 30)) {
      reply(request,
            core::Outcome(core::Granted{.token = core::FencingToken{result->revision.get()}}));
      return;
    }
  }
  reply(request, std::move(result->outcome));
}

void Host::wait(const Request& request, const core::Acquire& acquire) {
  static_cast<void>(serving_->waiters.attach(
      {.lease = acquire.lease, .request = acquire.request},
      [this, request](const Result<core::Notice>& notice, core::Revision /*revision*/) {
        if (!notice) {
          reply(request, notice.error());
          return;
        }
        std::visit([&](const auto& end) { reply(request, core::Outcome(end)); }, notice->end);
      }));
}

void Host::read(const Request& request, const std::string& name) {
  enter(request.client, [this, request, name](RaftStore& here, Time now) {
    auto poll = [this, request, name](Result<server::View> view) {
      if (!view) {
        reply(request, std::move(view).error());
        return;
      }
      ReadResult sight{.revision = view->state.revision};
      const auto* lock = view->state.locks.find({.name = name, .kind = core::ResourceKind::name});
      if (lock != nullptr) {
        sight.holders.assign(lock->holds().begin(), lock->holds().end());
      }
      reply(request, std::move(sight));
    };
    if (world_.options().mutant == Mutant::read_unconfirmed) {
      here.peek(std::move(poll), now);
    } else {
      here.read(std::move(poll), now);
    }
  });
}

void Host::watch(const Request& request, core::Revision start) {
  enter(request.client, [this, request, start](RaftStore& here, Time now) {
    here.peek(
        [this, request, start](Result<server::View> view) {
          if (view->log.leader == 0 || serving_->store->is_removed()) {
            // This member would never send events.
            reply(request, Error{.code = Errc::unavailable, .detail = "knows no leader"});
            return;
          }
          auto stream = std::make_shared<Stream>();
          stream->request = request;
          const auto weak = std::weak_ptr(stream);
          auto added =
              serving_->hub.add({.key = "", .match = server::Match::prefix, .start = start},
                                view->state, [this, weak] {
                                  if (const auto there = weak.lock()) {
                                    tell_watcher(there);
                                  }
                                });
          if (!added) {
            reply(request, WatchLost{});
            return;
          }
          if (const auto old = std::exchange(serving_->streams[request.client], stream)) {
            serving_->hub.remove(old->watch);
          }
          stream->watch = *added;
          const auto known = view->state.revision;
          reply(request, WatchStarted{.revision = start == core::Revision{}
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
    reply(stream->request, WatchEvents{.sequence = stream->sent++, .events = std::move(events)});
  }
  if (stream->watch->cancelled_at().has_value()) {
    reply(stream->request, WatchLost{});
  }
}

void Host::reply(const Request& request, decltype(Reply::what) what) {
  const auto shared =
      std::make_shared<const Reply>(Reply{.number = request.number,
                                          .from = endpoint_,
                                          .leader = serving_->store->position().leader,
                                          .what = std::move(what)});
  const auto deliver = [this, to = request.client, shared] {
    directory_.requesters.at(to)->handle_reply(*shared);
  };
  if (std::holds_alternative<WatchEvents>(shared->what) ||
      std::holds_alternative<WatchStarted>(shared->what)) {
    network_.stream(endpoint_, request.client, deliver);
  } else {
    network_.send(endpoint_, request.client, deliver);
  }
}

}  // namespace tenure::simulation
