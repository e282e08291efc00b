#include "server/raft/node.hpp"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <utility>

#include <boost/asio/post.hpp>

namespace tenure::server::raft {

using std::chrono::steady_clock;

namespace {

RaftStoreOptions store_options(const NodeOptions& options, MemberId id, GroupKind group_kind) {
  RaftStoreOptions made = options;
  made.id = id;
  made.seed = static_cast<std::uint32_t>(steady_clock::now().time_since_epoch().count());
  made.versions = {.newest = core::newest_version,
                   .wanted = std::min(options.version_max, core::newest_version)};
  made.disk_name = options.folder.string();
  if (group_kind == GroupKind::single) {
    made.trailing_entries = 0;
  }
  return made;
}

/// Time slice of client work on the loop's thread. Bounds the delay of heartbeats, votes and log
/// writes to a hundredth of a short election timeout (100 ms).
constexpr std::chrono::microseconds client_slice{2000};

}  // namespace

Node::Node(NodeOptions options, LoadedNode loaded)
    : options_(std::move(options)),
      clients_(loop_, client_slice),
      folder_(std::move(loaded.folder)),
      votes_(std::move(loaded.votes)),
      snapshot_file_(std::move(loaded.snapshot_file)),
      journal_(std::move(loaded.journal)),
      work_(loop_.get_executor()),
      store_(store_options(options_, folder_.member(), loaded.group_kind), *this,
             {.machine = std::move(loaded.machine),
              .snapshot_bytes = snapshot_file_->bytes(),
              .recovered = std::move(loaded.recovered)}),
      timer_(loop_),
      compactor_(*snapshot_file_),
      disk_(loaded.group_kind == GroupKind::single ? options_.disk : DiskMode::thread,
            {.journal = *journal_,
             .snapshot = *snapshot_file_,
             .report = options_.report,
             .wake = [this] { boost::asio::post(loop_, [this] { after_event(); }); }}) {
  journal_->when_space_changes([this] { on_loop([this](Time now) { store_.disk_changed(now); }); });
}

Result<std::unique_ptr<Node>> Node::open(NodeOptions options) {
  auto loaded = load_node(options);
  if (!loaded) {
    return std::unexpected(std::move(loaded).error());
  }
  return std::make_unique<Node>(std::move(options), std::move(*loaded));
}

Node::~Node() {
  stop();
}

void Node::start() {
  std::promise<void> replayed;
  auto is_replayed = replayed.get_future();
  thread_ = std::thread([this, replayed = std::move(replayed)]() mutable {
    if (transport_ != nullptr) {
      // Before the store starts, so that it can send its first messages.
      transport_->start(loop_, [this](MemberId sender, const Message& message) {
        store_.receive(sender, message, clock_.now());
        after_event();
      });
    }
    store_.start(clock_.now());
    after_event();
    replayed.set_value();
    loop_.run();
  });
  is_replayed.wait();
}

void Node::stop() {
  if (!thread_.joinable()) {
    return;
  }
  // In DiskMode::loop this thread may itself wait for space on a full disk.
  journal_->stop_waiting();
  std::promise<void> finished;
  boost::asio::post(loop_,
                    [this, &finished] { begin_to_stop([&finished] { finished.set_value(); }); });
  // Takes at most an election timeout and a snapshot (RaftStore::stop()).
  finished.get_future().wait();
  loop_.stop();
  thread_.join();
  is_over_ = true;
  store_.give_up_everything({.code = Errc::unavailable, .detail = "the server stops"});
  // Runs handlers that other threads have posted since, so that each callback is called.
  work_.reset();
  timer_.cancel();
  loop_.restart();
  loop_.poll();
}

// The transport stays open during the last snapshot: a peer may still need replies.
void Node::begin_to_stop(std::move_only_function<void()> done) {
  store_.stop(
      [this, done = std::move(done)]() mutable {
        boost::asio::post(loop_, [this, done = std::move(done)]() mutable {
          if (transport_ != nullptr) {
            transport_->stop();
          }
          done();
        });
      },
      clock_.now());
  after_event();
}

Identity Node::identity() const {
  return {.cluster = folder_.cluster().get(), .member = folder_.member().get()};
}

void Node::listen(Listener& listener) {
  listeners_.add(listener);
  store_.listen(listener);
}

template <class Ask>
void Node::on_loop(Ask ask) {
  boost::asio::post(loop_, [this, ask = std::move(ask)]() mutable {
    ask(clock_.now());
    after_event();
  });
}

void Node::propose(core::Command command, Decision decided) {
  // Computed on the calling thread, which relieves the thread of the loop.
  const auto bytes = encoded_size(command);
  Proposal proposal{.command = std::move(command), .decided = std::move(decided), .bytes = bytes};
  switch (store_.proposal_queue().push(proposal)) {
    case ProposalQueue::PushResult::queued: return;
    case ProposalQueue::PushResult::queued_first: drain_soon(); return;
    case ProposalQueue::PushResult::full:
      boost::asio::post(loop_, [decided = std::move(proposal.decided)]() mutable {
        decided(fail(Errc::resource_exhausted,
                     "too many requests are waiting for the log; try again later"));
      });
      return;
    case ProposalQueue::PushResult::closed:
      boost::asio::post(loop_, [decided = std::move(proposal.decided)]() mutable {
        decided(fail(Errc::unavailable, "the server stops"));
      });
      return;
  }
}

void Node::read(OnRead on_read) {
  on_loop([this, on_read = std::move(on_read)](Time now) mutable {
    // A confirmed read stays valid when it runs later. Reading the state can take long, so it runs
    // as client work.
    store_.read(
        [this, on_read = std::move(on_read)](Result<View> view) mutable {
          view ? peek(std::move(on_read)) : on_read(std::move(view));
        },
        now);
  });
}

void Node::peek(OnRead on_read) {
  boost::asio::post(client_executor(), [this, on_read = std::move(on_read)]() mutable {
    store_.peek(std::move(on_read), clock_.now());
    after_event();
  });
}

void Node::take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) {
  on_loop([this, done = std::move(done)](Time now) mutable {
    store_.take_snapshot(std::move(done), now);
  });
}

void Node::change_members(MemberChange change, std::move_only_function<void(Result<void>)> done) {
  on_loop([this, change = std::move(change), done = std::move(done)](Time now) mutable {
    store_.change_members(std::move(change), std::move(done), now);
  });
}

void Node::transfer_leadership(std::uint64_t to, std::move_only_function<void(Result<void>)> done) {
  on_loop([this, to, done = std::move(done)](Time now) mutable {
    store_.transfer_leadership(MemberId{to}, std::move(done), now);
  });
}

// Makes one entry of all waiting commands. Commands that arrive during its write form the next one.
void Node::drain() {
  store_.drain(clock_.now());
  after_event();
  store_.go_idle();
}

void Node::after_event() {
  work_disk();
  arm_timer();
}

void Node::work_disk() {
  // Repeated, because an event may queue further operations, which DiskMode::loop performs at once.
  for (auto done = disk_.take_done(); done.operations > 0; done = disk_.take_done()) {
    for (const auto& sync : done.syncs) {
      listeners_.synced(sync.took, sync.entries);
    }
    store_.disk_done(done.operations, clock_.now());
  }
}

void Node::arm_timer() {
  const auto deadline = store_.deadline();
  // A timer that fires early is armed again. Moving it on every renewal would cost more: most
  // leases are renewed long before they expire.
  if (!deadline.has_value() || (timer_at_.has_value() && *timer_at_ <= *deadline)) {
    return;
  }
  timer_at_ = deadline;
  // The timer uses CLOCK_MONOTONIC. If that clock is faster than clock_, it fires early.
  timer_.expires_after(*deadline - clock_.now());
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) {
      return;
    }
    timer_at_.reset();
    store_.timeout(clock_.now());
    after_event();
  });
}

// Environment ------------------------------------------------------------------------------------

void Node::save_vote(Term term, MemberId voted_for) {
  if (auto saved = votes_.save({.term = term, .voted_for = voted_for}); !saved) {
    stop_process(options_.report, "cannot save the vote: " + saved.error().detail);
  }
}

void Node::append(Index first, const std::vector<Entry>& entries) {
  disk_.append(first, entries);
}

void Node::install(const Snapshot& snapshot) {
  disk_.install(snapshot);
}

core::StateMachine Node::restore(const Snapshot& /*snapshot*/, core::StateMachine before) {
  // Destroying a large state takes long, so the background worker does it.
  background_worker_.add([before = std::move(before)]() mutable { before = core::StateMachine(); });
  return disk_.take_installed();
}

void Node::cut(Index last) {
  disk_.cut(last);
}

void Node::compact(CompactionPlan plan) {
  compactor_.begin(std::move(plan), [this](Result<std::size_t> bytes) {
    boost::asio::post(loop_, [this, bytes = std::move(bytes)] {
      store_.compacted(bytes, clock_.now());
      after_event();
    });
  });
}

DiskState Node::disk() const {
  return {.space = journal_->space(),
          .segment_bytes = journal_->segment_bytes(),
          .log_bytes = journal_->bytes()};
}

void Node::send(MemberId peer, Message message) {
  if (transport_ != nullptr && !is_over_) {
    transport_->send(peer, std::move(message));
  }
}

// Reading a snapshot takes longer than a heartbeat interval and as much memory as the file: it is
// read on the background worker, once per peer, and only if the transport accepts it.
void Node::send_snapshot(MemberId peer, Term term) {
  if (transport_ == nullptr || is_over_ || !transport_->takes_snapshot(peer, term)) {
    return;
  }
  const auto [reading, is_new] = snapshots_being_read_.try_emplace(peer, term);
  reading->second = std::max(reading->second, term);
  if (!is_new) {
    return;
  }
  background_worker_.add([this, peer] {
    auto snapshot = snapshot_file_->read();
    boost::asio::post(loop_, [this, peer, snapshot = std::move(snapshot)]() mutable {
      const Term newest = snapshots_being_read_.extract(peer).mapped();
      if (snapshot && snapshot->has_value()) {
        send(peer, InstallSnapshot{.term = newest, .snapshot = std::move(**snapshot)});
        return;
      }
      if (is_over_) {
        return;
      }
      const auto error = snapshot ? Error{.code = Errc::unavailable, .detail = "no snapshot exists"}
                                  : snapshot.error();
      store_.snapshot_unreadable(error, clock_.now());
      after_event();
    });
  });
}

std::optional<Versions> Node::versions_of(MemberId peer) const {
  return transport_ != nullptr && !is_over_ ? transport_->versions_of(peer) : std::nullopt;
}

void Node::set_members(const std::vector<Member>& members) {
  if (transport_ != nullptr && !is_over_) {
    transport_->set_members(members);
  }
}

Time Node::local_time() {
  return clock_.now();
}

void Node::drain_soon() {
  boost::asio::post(loop_, [this] { drain(); });
}

void Node::report(log::Level level, std::string_view event, log::Fields fields) {
  options_.report(level, event, fields);
}

// A bug in this program or in libraft, unlike stop_process(): abort() leaves a core file.
void Node::fatal(const std::string& error) {
  report(log::Level::error, "consensus_failed", {{"error", error}});
  std::abort();
}

}  // namespace tenure::server::raft
