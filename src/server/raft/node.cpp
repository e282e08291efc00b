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

ReplicaOptions replica_options(MemberId id) {
  return {.id = id,
          .seed = static_cast<std::uint32_t>(steady_clock::now().time_since_epoch().count())};
}

/// A client that got an answer often asks the next thing within this time.
constexpr std::chrono::microseconds awake_for{100};

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
      folder_(std::move(loaded.folder)),
      votes_(std::move(loaded.votes)),
      snapshot_file_(std::move(loaded.snapshot_file)),
      journal_(std::move(loaded.journal)),
      work_(loop_.get_executor()),
      machine_(std::move(loaded.machine)),
      recovered_(std::move(loaded.recovered)),
      replica_(replica_options(folder_.member()), *this),
      tick_timer_(loop_),
      replica_timer_(loop_),
      retry_timer_(loop_),
      snapshot_bytes_(snapshot_file_->bytes()),
      intake_(options_.in_flight),
      compactor_(*snapshot_file_),
      disk_(options_.disk,
            {.journal = *journal_,
             .snapshot = *snapshot_file_,
             .report = options_.report,
             .wake = [this] { boost::asio::post(loop_, [this] { after_event(); }); }}) {
  journal_->when_space_changes([this] { boost::asio::post(loop_, [this] { after_event(); }); });
}

Node::~Node() {
  stop();
}

void Node::start() {
  std::promise<void> replayed;
  auto is_replayed = replayed.get_future();
  thread_ = std::thread([this, replayed = std::move(replayed)]() mutable {
    replica_.start(*std::exchange(recovered_, std::nullopt));
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
  std::promise<void> finished;
  boost::asio::post(loop_, [this, &finished] {
    const Error why{.code = Errc::unavailable, .detail = "the server stops"};
    for (auto& proposal : intake_.close()) {
      refuse(std::move(proposal), why);
    }
    if (log_bytes_ == 0) {
      finished.set_value();
      return;
    }
    request_snapshot([&finished](const Result<std::uint64_t>&) { finished.set_value(); });
  });
  finished.get_future().wait();
  loop_.stop();
  thread_.join();
  give_up_all({.code = Errc::unavailable, .detail = "the server stops"});
  // What others posted in the meantime still gets its answer.
  work_.reset();
  loop_.restart();
  loop_.poll();
}

Identity Node::identity() const {
  return {.cluster = folder_.cluster().get(), .member = folder_.member().get()};
}

void Node::change_members(MemberChange /*change*/,
                          std::move_only_function<void(Result<void>)> done) {
  boost::asio::post(loop_, [done = std::move(done)]() mutable {
    done(fail(Errc::unsupported, "a member that is alone stays alone"));
  });
}

void Node::transfer_leadership(std::uint64_t /*to*/,
                               std::move_only_function<void(Result<void>)> done) {
  boost::asio::post(loop_, [done = std::move(done)]() mutable {
    done(fail(Errc::invalid_argument, "there is no other member that could lead"));
  });
}

void Node::read(Look look) {
  boost::asio::post(loop_, [this, look = std::move(look)]() mutable {
    // A member that is alone has no rival that could have gone on without it, and whatever was
    // acknowledged has been applied on this thread.
    if (!is_ready_) {
      look(fail(Errc::unavailable, "this member does not lead"));
      return;
    }
    this->look(std::move(look));
  });
}

void Node::peek(Look look) {
  boost::asio::post(loop_,
                    [this, look = std::move(look)]() mutable { this->look(std::move(look)); });
}

void Node::look(Look look) {
  const auto log = position();
  const auto now = is_ready_ ? clock_.at(steady_clock::now()) : machine_.state().now;
  look(View{.state = machine_.state(), .log = log, .now = now});
}

LogPosition Node::position() const {
  const auto space = journal_->space();
  return {.is_leader = is_ready_,
          .leader = replica_.leader().get(),
          .term = replica_.term().get(),
          .commit = replica_.commit().get(),
          .applied = replica_.applied().get(),
          .first = replica_.log().first().get(),
          .last = replica_.log().last().get(),
          .snapshot = replica_.snapshot().index.get(),
          .log_bytes = journal_->bytes(),
          .snapshot_bytes = snapshot_bytes_,
          .has_space = !space.is_short || room().for_growing > 0};
}

void Node::after_event() {
  work_disk();
  if (!is_ready_ && past_.has_value() && replica_.applied() >= *past_) {
    begin_to_lead();
  }
  arm_tick();
  arm_replica_timer();
  compact_if_due();
  if (is_draining_paused_ && may_submit()) {
    resume_draining();
  }
}

void Node::work_disk() {
  for (auto done = disk_.take_done(); done.operations > 0; done = disk_.take_done()) {
    for (const auto& sync : done.syncs) {
      tell_all([&](Listener& listener) { listener.synced(sync.took, sync.entries); });
    }
    replica_.disk_done(done.operations);
  }
}

void Node::begin_to_lead() {
  is_ready_ = true;
  clock_.begin(machine_.state().now, steady_clock::now());
  if (machine_.state().limits != options_.limits) {
    propose_own(core::SetLimits{.limits = options_.limits});
  }
  tell_all([log = position()](Listener& listener) { listener.role_changed(log); });
}

void Node::arm_tick() {
  const auto deadline = machine_.next_deadline();
  if (!is_ready_ || is_tick_on_its_way_ || !deadline.has_value()) {
    return;
  }
  const auto at = std::max(clock_.local(*deadline), no_tick_before_);
  // A timer that goes off too early looks again; most leases are renewed long before it does.
  if (tick_at_.has_value() && *tick_at_ <= at) {
    return;
  }
  tick_at_ = at;
  tick_timer_.expires_at(at);
  tick_timer_.async_wait([this](boost::system::error_code cancelled) {
    if (!cancelled) {
      tick_at_.reset();
      tick();
    }
  });
}

void Node::tick() {
  const auto deadline = machine_.next_deadline();
  if (!is_ready_ || is_tick_on_its_way_ || !deadline.has_value()) {
    return;
  }
  if (*deadline > clock_.at(steady_clock::now())) {
    arm_tick();
    return;
  }
  is_tick_on_its_way_ = true;
  propose_own(core::Tick{});
}

// A member that is alone has nobody to send heartbeats to and nobody to miss.
void Node::arm_replica_timer() {
  if (is_replica_timer_armed_ || replica_.role() == Role::leader) {
    return;
  }
  is_replica_timer_armed_ = true;
  replica_timer_.expires_at(steady_clock::time_point(replica_.deadline()));
  replica_timer_.async_wait([this](boost::system::error_code cancelled) {
    is_replica_timer_armed_ = false;
    if (cancelled) {
      return;
    }
    if (now() >= replica_.deadline()) {
      replica_.timeout();
    }
    after_event();
  });
}

void Node::tell_all(const std::function<void(Listener&)>& tell) {
  for (auto* listener : listeners_) {
    tell(*listener);
  }
}

}  // namespace tenure::server::raft
