#include "server/raft/node.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include <boost/asio/post.hpp>

#include "server/raft/node_loaded.hpp"
#include "sys/vigil.hpp"

namespace tenure::server::raft {

using std::chrono::steady_clock;

namespace {

ParticipantOptions participant_options(const NodeOptions& options, MemberId id, Company company) {
  return {.id = id,
          .seed = static_cast<std::uint32_t>(steady_clock::now().time_since_epoch().count()),
          .election_timeout = options.election_timeout,
          .heartbeat = options.heartbeat,
          .limits = options.limits,
          .versions = {.newest = core::newest_version,
                       .wanted = std::min(options.version_max, core::newest_version)},
          .in_flight = options.in_flight,
          .batch_commands_max = options.batch_commands_max,
          .batch_bytes_max = options.batch_bytes_max,
          .entries_in_flight_max = options.entries_in_flight_max,
          .peer_entries_max = options.peer_entries_max,
          .trailing_entries = company == Company::alone ? 0 : options.trailing_entries,
          .snapshot_log_bytes = options.snapshot_log_bytes,
          .snapshot_factor = options.snapshot_factor,
          .disk_name = options.folder.string(),
          .space_retry = options.space_retry,
          .snapshot_retry = options.snapshot_retry};
}

/// A client that got an answer often asks the next thing within this time.
constexpr std::chrono::microseconds awake_for{100};

/// How long the work of clients may keep the thread. Heartbeats, votes and the log wait this long
/// at most, a hundredth of the shortest sensible election timeout.
constexpr std::chrono::microseconds client_slice{2000};

/// Until it is stopped. Stays awake for a moment after each thing that it did.
void run(boost::asio::io_context& loop) {
  sys::Vigil vigil(awake_for);
  const auto look = [&] { return loop.poll() > 0 || loop.stopped(); };
  while (!loop.stopped()) {
    if (!look() && !vigil.keep(look)) {
      loop.run_one();
    }
  }
}

}  // namespace

Node::Node(NodeOptions options, Loaded loaded)
    : options_(std::move(options)),
      clients_(loop_, client_slice),
      folder_(std::move(loaded.folder)),
      votes_(std::move(loaded.votes)),
      snapshot_file_(std::move(loaded.snapshot_file)),
      journal_(std::move(loaded.journal)),
      work_(loop_.get_executor()),
      participant_(participant_options(options_, folder_.member(), loaded.company), *this,
                   {.machine = std::move(loaded.machine),
                    .snapshot_bytes = snapshot_file_->bytes(),
                    .recovered = std::move(loaded.recovered)}),
      timer_(loop_),
      compactor_(*snapshot_file_),
      disk_(loaded.company == Company::alone ? options_.disk : DiskPlace::thread,
            {.journal = *journal_,
             .snapshot = *snapshot_file_,
             .report = options_.report,
             .wake = [this] { boost::asio::post(loop_, [this] { after_event(); }); }}) {
  journal_->when_space_changes(
      [this] { on_loop([this](Time now) { participant_.disk_changed(now); }); });
}

Node::~Node() {
  stop();
}

void Node::start() {
  std::promise<void> replayed;
  auto is_replayed = replayed.get_future();
  thread_ = std::thread([this, replayed = std::move(replayed)]() mutable {
    if (transport_ != nullptr) {
      transport_->start(loop_, [this](MemberId sender, const Message& message) {
        participant_.receive(sender, message, clock_.now());
        after_event();
      });
    }
    participant_.start(clock_.now());
    after_event();
    replayed.set_value();
    run(loop_);
  });
  is_replayed.wait();
}

void Node::stop() {
  if (!thread_.joinable()) {
    return;
  }
  // Whoever writes to a full disk may be the one who has to stop.
  journal_->stop_waiting();
  std::promise<void> finished;
  boost::asio::post(loop_,
                    [this, &finished] { begin_to_stop([&finished] { finished.set_value(); }); });
  finished.get_future().wait();
  loop_.stop();
  thread_.join();
  is_over_ = true;
  participant_.give_up_everything({.code = Errc::unavailable, .detail = "the server stops"});
  // What others posted in the meantime still gets its answer.
  work_.reset();
  timer_.cancel();
  loop_.restart();
  loop_.poll();
}

// Peers may still be answered while the last snapshot is taken; after it nobody is.
void Node::begin_to_stop(std::move_only_function<void()> done) {
  participant_.stop(
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
  listeners_.push_back(&listener);
  participant_.listen(listener);
}

template <class Ask>
void Node::on_loop(Ask ask) {
  boost::asio::post(loop_, [this, ask = std::move(ask)]() mutable {
    ask(clock_.now());
    after_event();
  });
}

void Node::propose(core::Command command, Decision decided) {
  const auto bytes = weight(command);
  Proposal proposal{.command = std::move(command), .decided = std::move(decided), .bytes = bytes};
  switch (participant_.intake().push(proposal)) {
    case Intake::Answer::queued: return;
    case Intake::Answer::queued_first: drain_soon(); return;
    case Intake::Answer::full:
      boost::asio::post(loop_, [decided = std::move(proposal.decided)]() mutable {
        decided(fail(Errc::resource_exhausted,
                     "too many requests are waiting for the log; try again later"));
      });
      return;
    case Intake::Answer::closed:
      boost::asio::post(loop_, [decided = std::move(proposal.decided)]() mutable {
        decided(fail(Errc::unavailable, "the server stops"));
      });
      return;
  }
}

void Node::read(Look look) {
  on_loop([this, look = std::move(look)](Time now) mutable {
    // Once the read is confirmed the state has all that it must have, now and later. Looking at it
    // may take long, so that is the work of a client.
    participant_.read(
        [this, look = std::move(look)](Result<View> view) mutable {
          view ? peek(std::move(look)) : look(std::move(view));
        },
        now);
  });
}

void Node::peek(Look look) {
  boost::asio::post(client_executor(), [this, look = std::move(look)]() mutable {
    participant_.peek(std::move(look), clock_.now());
    after_event();
  });
}

void Node::take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) {
  on_loop([this, done = std::move(done)](Time now) mutable {
    participant_.take_snapshot(std::move(done), now);
  });
}

void Node::change_members(MemberChange change, std::move_only_function<void(Result<void>)> done) {
  on_loop([this, change = std::move(change), done = std::move(done)](Time now) mutable {
    participant_.change_members(std::move(change), std::move(done), now);
  });
}

void Node::transfer_leadership(std::uint64_t to, std::move_only_function<void(Result<void>)> done) {
  on_loop([this, to, done = std::move(done)](Time now) mutable {
    participant_.transfer_leadership(MemberId{to}, std::move(done), now);
  });
}

// One entry of all that waits. What comes while it is on its way waits for the next.
void Node::drain() {
  participant_.drain(clock_.now());
  after_event();
  participant_.rest();
}

void Node::after_event() {
  work_disk();
  arm_timer();
}

void Node::work_disk() {
  for (auto done = disk_.take_done(); done.operations > 0; done = disk_.take_done()) {
    for (const auto& sync : done.syncs) {
      for (auto* listener : listeners_) {
        listener->synced(sync.took, sync.entries);
      }
    }
    participant_.disk_done(done.operations, clock_.now());
  }
}

void Node::arm_timer() {
  const auto deadline = participant_.deadline();
  // A timer that goes off too early looks again; most leases are renewed long before it does.
  if (!deadline.has_value() || (timer_at_.has_value() && *timer_at_ <= *deadline)) {
    return;
  }
  timer_at_ = deadline;
  // The timer follows CLOCK_MONOTONIC. Where that is faster than clock_, it goes off too early.
  timer_.expires_after(*deadline - clock_.now());
  timer_.async_wait([this](boost::system::error_code cancelled) {
    if (cancelled) {
      return;
    }
    timer_at_.reset();
    participant_.timeout(clock_.now());
    after_event();
  });
}

}  // namespace tenure::server::raft
