#include "simulation/host.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/snapshot.hpp"
#include "simulation/message_formatter.hpp"
#include "support/raft/event_line.hpp"

namespace tenure::simulation {

using namespace server::raft;

Host::Host(const Context& context, Endpoint endpoint, HostClock clock)
    : world_(context.world),
      network_(context.network),
      checker_(context.checker),
      directory_(context.directory),
      endpoint_(endpoint),
      clock_(clock),
      disk_(context.world) {}

bool Host::leads() const {
  return is_up() && serving_->store->is_ready();
}

bool Host::believes_to_lead() const {
  return is_up() && serving_->store->replica().role() == Role::leader;
}

const RaftStore& Host::store() const {
  return *serving_->store;
}

server::raft::Time Host::time() const {
  return server::raft::Time(
      std::chrono::duration_cast<server::raft::Time::duration>(clock_.local(world_.now())));
}

Versions Host::versions() const {
  const bool wants_oldest = (endpoint_ + boots()) % 7 == 6;
  return {.newest = core::newest_version,
          .wanted = wants_oldest ? core::oldest_version : core::newest_version};
}

void Host::boot() {
  ++life_;
  if (world_.is_tracing()) {
    world_.trace("boot of member " + std::to_string(id().get()));
  }
  checked_ = Index{};
  armed_.reset();
  is_drain_due_ = false;
  paused_until_ = VirtualTime{};
  auto found = disk_.load();
  if (world_.has_failed()) {
    return;
  }
  RaftStoreState state;
  if (found.snapshot.has_value()) {
    auto restored = core::decode(*found.snapshot->body);
    if (!restored) {
      world_.fail("a snapshot on disk cannot be read: " + restored.error().detail);
      return;
    }
    state.machine = core::StateMachine(std::move(*restored));
    state.snapshot_bytes = found.snapshot->body->size();
  }
  state.recovered = std::move(found.recovered);
  const auto& options = world_.options();
  serving_ = std::make_unique<Serving>();
  serving_->store = std::make_unique<RaftStore>(
      RaftStoreOptions{.id = id(),
                       .seed = static_cast<std::uint32_t>(world_.random().below(1U << 31)),
                       .election_timeout = options.election_timeout,
                       .heartbeat = options.heartbeat,
                       .versions = versions(),
                       .batch_commands_max = options.batch_commands_max,
                       .entries_in_flight_max = options.entries_in_flight_max,
                       .peer_entries_max = options.peer_entries_max,
                       .trailing_entries = options.trailing_entries,
                       .snapshot_log_bytes = options.snapshot_log_bytes,
                       .snapshot_factor = 0},
      *this, std::move(state));
  auto& store = *serving_->store;
  store.listen(*this);
  store.listen(serving_->waiters);
  store.listen(serving_->hub);
  disk_.when_done([this](std::size_t count) {
    enter([count](RaftStore& here, Time now) { here.disk_done(count, now); });
  });
  enter([](RaftStore& here, Time now) { here.start(now); });
}

void Host::crash() {
  if (world_.is_tracing()) {
    world_.trace("crash of member " + std::to_string(id().get()));
  }
  ++life_;
  serving_.reset();
  backlog_.clear();
  disk_.crash();
}

void Host::pause(VirtualTime length) {
  if (world_.is_tracing()) {
    world_.trace("member " + std::to_string(id().get()) + " pauses for " +
                 std::to_string(length.count()));
  }
  paused_until_ = std::max(paused_until_, world_.now() + length);
  wake_at(paused_until_);
}

void Host::wake_at(VirtualTime when) {
  world_.at(when, [this, life = life_] {
    if (life != life_ || is_paused()) {
      return;
    }
    while (!backlog_.empty()) {
      const auto source = std::next(
          backlog_.begin(), static_cast<std::ptrdiff_t>(world_.random().index(backlog_.size())));
      auto call = std::move(source->second.front());
      source->second.pop_front();
      if (source->second.empty()) {
        backlog_.erase(source);
      }
      enter(std::move(call));
    }
  });
}

void Host::fill_disk(bool is_full) {
  is_disk_full_ = is_full;
  enter([](RaftStore& here, Time now) { here.disk_changed(now); });
}

void Host::enter(Endpoint source, Call call) {
  if (!is_up()) {
    return;
  }
  if (is_paused()) {
    backlog_[source].push_back(std::move(call));
    return;
  }
  auto& store = *serving_->store;
  call(store, time());
  checker_.poll(id(), store.replica(), store.state(), checked_);
  arm();
}

void Host::arm() {
  const auto deadline = serving_->store->deadline();
  if (!deadline.has_value()) {
    return;
  }
  const auto due =
      std::max(clock_.real(deadline->time_since_epoch()), world_.now() + VirtualTime(1));
  if (armed_.has_value() && *armed_ <= due) {
    return;  // The timer fires early and is armed again.
  }
  armed_ = due;
  world_.at(due, [this, life = life_, due] {
    if (life != life_ || armed_ != due) {
      return;
    }
    armed_.reset();
    enter([](RaftStore& here, Time now) {
      if (const auto at = here.deadline(); at.has_value() && *at <= now) {
        here.timeout(now);
      }
    });
  });
}

void Host::receive(MemberId sender, const Message& message) {
  if (world_.is_tracing()) {
    world_.trace(std::to_string(sender.get()) + " -> " + std::to_string(id().get()) + " " +
                 describe(message));
  }
  enter(static_cast<Endpoint>(sender.get() - 1),
        [sender, message](RaftStore& here, Time now) { here.receive(sender, message, now); });
}

void Host::change_members(const server::MemberChange& change, Done done) {
  enter([change, done = std::move(done)](RaftStore& here, Time now) {
    here.change_members(change, done, now);
  });
}

void Host::transfer_leadership(MemberId to, Done done) {
  enter([to, done = std::move(done)](RaftStore& here, Time now) {
    here.transfer_leadership(to, done, now);
  });
}

// Environment
// -------------------------------------------------------------------------------------

void Host::save_vote(Term term, MemberId voted_for) {
  disk_.save_vote(term, voted_for);
}

void Host::append(Index first, const std::vector<Entry>& entries) {
  disk_.append(first, entries);
}

void Host::install(const Snapshot& snapshot) {
  checker_.on_snapshot(snapshot);
  disk_.install(snapshot);
}

core::StateMachine Host::restore(const Snapshot& snapshot, core::StateMachine /*before*/) {
  auto state = core::decode(*snapshot.body);
  if (!state) {
    world_.fail("a snapshot of the leader cannot be restored: " + state.error().detail);
    return core::StateMachine();
  }
  return core::StateMachine(std::move(*state));
}

void Host::cut(Index last) {
  disk_.cut(last);
}

void Host::compact(CompactionPlan plan) {
  disk_.compact(std::move(plan), [this](const Result<std::size_t>& bytes) {
    if (bytes.has_value()) {
      checker_.on_snapshot(*disk_.snapshot());
    }
    enter([bytes](RaftStore& here, Time now) { here.compacted(bytes, now); });
  });
}

DiskState Host::disk() const {
  const auto segment = world_.options().segment_bytes;
  return {.space = {.left = is_disk_full_ ? segment / 3 : segment,
                    .is_next_ready = !is_disk_full_,
                    .is_short = is_disk_full_},
          .segment_bytes = segment,
          .log_bytes = disk_.log_bytes()};
}

void Host::send(MemberId peer, Message message) {
  const auto to = static_cast<Endpoint>(peer.get() - 1);
  if (to >= directory_.hosts.size()) {
    return;
  }
  const auto shared = std::make_shared<const Message>(std::move(message));
  network_.send(endpoint_, to,
                [this, to, shared] { directory_.hosts[to]->receive(id(), *shared); });
}

void Host::send_snapshot(MemberId peer, Term term) {
  if (!disk_.snapshot().has_value()) {
    world_.fail("a peer needs a snapshot, and there is none");
    return;
  }
  send(peer, InstallSnapshot{.term = term, .snapshot = *disk_.snapshot()});
}

std::optional<Versions> Host::versions_of(MemberId peer) const {
  const auto& host = *directory_.hosts.at(peer.get() - 1);
  return host.is_up() ? std::optional(host.versions()) : std::nullopt;
}

void Host::set_members(const std::vector<Member>& members) {
  if (world_.is_tracing()) {
    std::string list;
    for (const auto& member : members) {
      list += " " + std::to_string(member.id.get()) +
              (member.role == MemberRole::voter ? "" : " (stand-by)");
    }
    world_.trace("member " + std::to_string(id().get()) + " talks to" + list);
  }
}

void Host::drain_soon() {
  if (std::exchange(is_drain_due_, true)) {
    return;
  }
  world_.after(VirtualTime(1), [this, life = life_] {
    if (life == life_) {
      enter([this](RaftStore& here, Time now) {
        is_drain_due_ = false;
        here.drain(now);
        here.go_idle();
      });
    }
  });
}

void Host::report(log::Level /*level*/, std::string_view event, log::Fields fields) {
  if (world_.is_tracing()) {
    world_.trace("member " + std::to_string(id().get()) + " logs " + test::line_of(event, fields));
  }
}

void Host::fatal(const std::string& why) {
  world_.fail("member " + std::to_string(id().get()) + " cannot go on: " + why);
}

void Host::applied(const core::Applied& what, const core::State& state) {
  checker_.on_applied(what, state);
}

}  // namespace tenure::simulation
