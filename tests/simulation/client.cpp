#include "simulation/client.hpp"

#include <algorithm>
#include <utility>

#include "simulation/host.hpp"

namespace tenure::simulation {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

// Time to wait for a reply, and for the end of a wait, before a retry.
constexpr nanoseconds reply_timeout = 250ms;
constexpr nanoseconds wait_timeout = 1200ms;
constexpr int renewals_per_ttl = 3;

}  // namespace

Client::Client(const Context& context, Endpoint endpoint, HostClock clock)
    : world_(context.world),
      network_(context.network),
      checker_(context.checker),
      directory_(context.directory),
      storage_(context.storage),
      endpoint_(endpoint),
      clock_(clock) {}

void Client::begin() {
  server_ = world_.random().index(directory_.hosts.size());
  open_session();
  schedule_work();
}

history::Time Client::real(sys::BootTime local) const {
  return clock_.real(local.time_since_epoch()).count();
}

void Client::after(nanoseconds delay, std::function<void()> task) {
  const auto when = clock_.real(boot_time().time_since_epoch() + delay);
  world_.at(
      std::max(when, world_.now() + VirtualTime(1)),
      [this, life = life_, task = std::move(task)]() mutable { awake(life, std::move(task)); });
}

void Client::awake(std::uint64_t life, std::function<void()> task) {
  if (life != life_) {
    return;
  }
  if (world_.now() < paused_until_) {
    world_.at(paused_until_,
              [this, life, task = std::move(task)]() mutable { awake(life, std::move(task)); });
    return;
  }
  task();
}

void Client::pause(VirtualTime length) {
  if (world_.is_tracing()) {
    world_.trace("client " + std::to_string(endpoint_) + " pauses for " +
                 std::to_string(length.count()));
  }
  paused_until_ = std::max(paused_until_, world_.now() + length);
}

void Client::die() {
  if (session_.has_value()) {
    checker_.forget_lease(session_->lease);
    // A dead process holds no lease.
    world_.record({.kind = history::Kind::lost, .owner = std::to_string(session_->lease.get())});
  }
  ++life_;
  paused_until_ = VirtualTime{};
  pending_requests_.clear();
  acquisitions_.clear();
  renewals_.clear();
  reads_.clear();
  session_.reset();
  work_ = {};
  begin();
}

void Client::end_lease() {
  if (session_.has_value()) {
    world_.record({.kind = history::Kind::lost, .owner = std::to_string(session_->lease.get())});
    checker_.forget_lease(session_->lease);
  }
  session_.reset();
  pending_requests_.clear();
}

bool Client::is_idle() const {
  return work_.step == Work::Step::idle;
}

std::string Client::status() const {
  std::string text = "client " + std::to_string(endpoint_) + " step " +
                     std::to_string(static_cast<int>(work_.step));
  for (const auto& held : work_.held) {
    text += " " + held.id;
  }
  return text + (session_.has_value() && session_->record ? "" : " without a lease");
}

// Requests
// ----------------------------------------------------------------------------------------

std::uint64_t Client::ask(core::Command command, OnOutcome on_outcome) {
  const auto number = ++last_number_;
  pending_requests_[number] = {.command = std::move(command), .on_outcome = std::move(on_outcome)};
  send(number);
  retry_later(number, reply_timeout);
  return number;
}

void Client::send(std::uint64_t number) {
  const auto& question = pending_requests_.at(number);
  const Request ask{.client = endpoint_, .number = number, .what = question.command};
  network_.send(endpoint_, server_,
                [this, ask, to = server_] { directory_.hosts[to]->handle_request(ask); });
}

void Client::retry_later(std::uint64_t number, nanoseconds delay) {
  after(delay, [this, number] {
    const auto it = pending_requests_.find(number);
    if (it == pending_requests_.end()) {
      return;
    }
    auto& question = it->second;
    if (!question.is_waiting) {
      // The server is down: another one may know the leader.
      server_ = (server_ + 1) % directory_.hosts.size();
    }
    if (world_.options().mutant == Mutant::new_request_id) {
      if (auto* acquire = std::get_if<core::Acquire>(&question.command)) {
        acquire->request = session_->last_request =
            core::RequestId{session_->last_request.get() + 1};
      }
    }
    send(number);
    retry_later(number, question.is_waiting ? wait_timeout : reply_timeout);
  });
}

void Client::handle_reply(const Reply& answer) {
  awake(life_, [this, answer] { handle(answer); });
}

void Client::handle(const Reply& answer) {
  const auto number = answer.number;
  if (const auto* error = std::get_if<Error>(&answer.what)) {
    reads_.erase(number);
    renewals_.erase(number);
    const auto known = pending_requests_.contains(number);
    follow(answer);
    if (known && error->code == Errc::unavailable && answer.leader != 0 &&
        answer.leader != answer.from + 1) {
      after(1ms, [this, number] {
        if (pending_requests_.contains(number)) {
          send(number);
        }
      });
    }
    return;
  }
  if (const auto* sight = std::get_if<ReadResult>(&answer.what)) {
    if (const auto read = reads_.extract(number); !read.empty()) {
      checker_.check_read(read.mapped().known, sight->revision);
      history::Event event{.kind = history::Kind::read,
                           .items = {{.name = read.mapped().name}},
                           .since = read.mapped().since.count()};
      for (const auto token : sight->holders) {
        event.holders.push_back(token.get());
      }
      world_.record(std::move(event));
    }
    return;
  }
  if (const auto* outcome = std::get_if<core::Outcome>(&answer.what)) {
    handle_outcome(number, *outcome);
  }
}

void Client::follow(const Reply& answer) {
  if (answer.from == server_ && answer.leader != 0 && answer.leader <= directory_.hosts.size()) {
    server_ = static_cast<std::size_t>(answer.leader - 1);
  }
}

void Client::handle_outcome(std::uint64_t number, const core::Outcome& outcome) {
  if (const auto renewal = renewals_.extract(number); !renewal.empty()) {
    const auto* renewed = std::get_if<core::Renewed>(&outcome);
    const bool is_ours = session_.has_value() && renewed != nullptr &&
                         renewed->answers.front().id == session_->lease && session_->record;
    if (is_ours && !renewed->answers.front().ttl.has_value()) {
      lose_lease();
    } else if (is_ours) {
      const bool is_generous = world_.options().mutant == Mutant::belief_too_long;
      session_->record->confirm(is_generous ? boot_time() + 30ms : renewal.mapped());
      world_.record({.kind = history::Kind::renewed,
                     .owner = std::to_string(session_->lease.get()),
                     .until = real(session_->record->valid_until())});
    }
    return;
  }
  const auto it = pending_requests_.find(number);
  if (it == pending_requests_.end()) {
    // A duplicate or late reply. It must not differ from the first one.
    const auto* granted = std::get_if<core::Granted>(&outcome);
    if (const auto id = acquisitions_.find(number);
        granted != nullptr && id != acquisitions_.end()) {
      world_.record({.kind = history::Kind::granted,
                     .request = id->second,
                     .token = granted->token.get(),
                     .until = world_.now().count()});
    }
    return;
  }
  if (std::holds_alternative<core::Queued>(outcome)) {
    it->second.is_waiting = true;
    const auto on_outcome = it->second.on_outcome;
    on_outcome(outcome);
    return;
  }
  const auto on_outcome = std::move(it->second.on_outcome);
  pending_requests_.erase(it);
  if (std::holds_alternative<core::LeaseLost>(outcome)) {
    lose_lease();
    return;
  }
  on_outcome(outcome);
}

// The lease
// ----------------------------------------------------------------------------------------

void Client::open_session() {
  const auto& options = world_.options();
  const auto ttl = world_.random().between(options.ttl_min, options.ttl_max);
  const core::LeaseId lease{endpoint_ * 100'000 + ++sessions_};
  session_ = Session{.lease = lease, .ttl = ttl};
  const auto sent = boot_time();
  // The reply may belong to an earlier attempt, so the TTL counts from the first attempt.
  ask(core::GrantLease{.id = lease,
                       .request = core::RequestId{lease.get()},
                       .ttl = ttl,
                       .client = "client " + std::to_string(endpoint_)},
      [this, sent, lease](const core::Outcome& outcome) {
        if (!session_.has_value() || session_->lease != lease) {
          return;
        }
        if (std::holds_alternative<core::LeaseGranted>(outcome)) {
          session_opened(sent);
        } else {
          session_.reset();
          after(100ms, [this] { open_session(); });
        }
      });
}

void Client::session_opened(sys::BootTime sent) {
  session_->record = std::make_shared<detail::LeaseRecord>(
      detail::LeaseRecord::Terms{.id = LeaseId{session_->lease.get()},
                                 .ttl = session_->ttl,
                                 .renewals_per_ttl = renewals_per_ttl},
      sent);
  world_.record({.kind = history::Kind::renewed,
                 .owner = std::to_string(session_->lease.get()),
                 .until = real(session_->record->valid_until())});
  checker_.add_lease(session_->lease,
                     [this, record = session_->record] { return record->is_valid(boot_time()); });
  check_lease();
}

bool Client::is_lease_valid() const {
  return session_.has_value() && session_->record && session_->record->is_valid(boot_time());
}

// Like client/lease_renewer: renews when due, retries after half an interval, and counts the lease
// as lost when it has expired on the own clock.
void Client::check_lease() {
  if (!session_.has_value() || !session_->record) {
    return;
  }
  const auto& record = *session_->record;
  const auto now = boot_time();
  const bool believes_on = world_.options().mutant == Mutant::belief_after_loss;
  if (!record.is_valid(now) && !believes_on) {
    lose_lease();
    return;
  }
  auto interval = detail::renewal_interval(session_->ttl, renewals_per_ttl);
  if (world_.options().renews_late && world_.random().one_in(2)) {
    // Late enough to race with the expiry.
    interval = nanoseconds(session_->ttl) * 97 / 100;
  }
  const auto due = record.term().sent + interval;
  if (now >= due) {
    renew();
  }
  const auto next = std::min(due > now ? due : now + interval / 2, record.valid_until());
  after(std::max<nanoseconds>(next - now, 1ms), [this, lease = session_->lease] {
    if (session_.has_value() && session_->lease == lease) {
      check_lease();
    }
  });
}

void Client::renew() {
  const auto number = ++last_number_;
  renewals_[number] = boot_time();
  const Request ask{.client = endpoint_,
                    .number = number,
                    .what = core::Command(core::RenewLeases{.leases = {session_->lease}})};
  network_.send(endpoint_, server_,
                [this, ask, to = server_] { directory_.hosts[to]->handle_request(ask); });
  if (renewals_.size() > 2) {
    // Two renewals without a reply: another server may know the leader.
    server_ = (server_ + 1) % directory_.hosts.size();
    renewals_.erase(renewals_.begin());
  }
}

void Client::lose_lease() {
  if (!session_.has_value()) {
    return;
  }
  if (world_.options().mutant == Mutant::belief_after_loss && session_->record) {
    return;
  }
  world_.record({.kind = history::Kind::lost, .owner = std::to_string(session_->lease.get())});
  checker_.forget_lease(session_->lease);
  session_.reset();
  pending_requests_.clear();
  renewals_.clear();
  abandon_work("lease_lost");
  open_session();
}

}  // namespace tenure::simulation
