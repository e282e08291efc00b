#include "support/store/memory_store.hpp"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <variant>

#include <boost/asio/post.hpp>

#include "support/wait_until.hpp"

namespace tenure::test {

MemoryStore::MemoryStore(const Options& options)
    : options_(options),
      machine_(options.limits, core::newest_version),
      work_(boost::asio::make_work_guard(loop_)) {
  log_ = {.is_leader = options.leads,
          .leader = options.leads ? options.identity.member : 0,
          .term = 1,
          .first_index = 1};
}

MemoryStore::~MemoryStore() {
  stop();
}

void MemoryStore::start() {
  on_loop([this] {
    for (auto* listener : listeners_) {
      listener->role_changed(log_);
    }
    arm_expiry();
  });
  thread_ = std::thread([this] { loop_.run(); });
}

void MemoryStore::stop() {
  if (is_stopped_.exchange(true)) {
    return;
  }
  // Behind everything that is in the loop already, which now answers `unavailable`.
  on_loop([this] {
    for (auto& proposal : std::exchange(kept_, {})) {
      proposal.decided(fail(Errc::unavailable, "the store has stopped"));
    }
    on_loop([this] { loop_.stop(); });
  });
  if (thread_.joinable()) {
    thread_.join();
  }
  // What came in between.
  loop_.restart();
  loop_.poll();
}

void MemoryStore::propose(core::Command command, Decision decided) {
  Proposal proposal{std::move(command), std::move(decided), std::chrono::steady_clock::now()};
  on_loop([this, proposal = std::move(proposal)]() mutable { take(std::move(proposal)); });
}

void MemoryStore::read(OnRead on_read) {
  on_loop([this, on_read = std::move(on_read)]() mutable {
    if (is_stopped_ || !log_.is_leader) {
      on_read(fail(Errc::unavailable, "this member is not the leader"));
    } else if (failing_reads_ > 0) {
      --failing_reads_;
      on_read(fail(Errc::unavailable, "no majority confirmed in time that this member leads"));
    } else {
      on_read(view());
    }
  });
}

void MemoryStore::peek(OnRead on_read) {
  on_loop([this, on_read = std::move(on_read)]() mutable {
    if (failing_peeks_ > 0) {
      --failing_peeks_;
      on_read(fail(Errc::unavailable, "not at present"));
    } else {
      on_read(view());
    }
  });
}

void MemoryStore::take_snapshot(std::move_only_function<void(Result<std::uint64_t>)> done) {
  on_loop([this, done = std::move(done)]() mutable {
    log_.snapshot_index = log_.applied_index;
    done(log_.snapshot_index);
  });
}

void MemoryStore::change_members(server::MemberChange change,
                                 std::move_only_function<void(Result<void>)> done) {
  on_loop([this, change = std::move(change), done = std::move(done)]() mutable {
    done(this->change(change));
  });
}

Result<void> MemoryStore::change(const server::MemberChange& change) {
  if (!log_.is_leader) {
    return fail(Errc::unavailable, "this member is not the leader");
  }
  const auto find = [this](std::uint64_t id) {
    return std::ranges::find(members_, id, &server::MemberStatus::id);
  };
  if (const auto* added = std::get_if<server::AddMember>(&change)) {
    if (find(added->id) != members_.end()) {
      return fail(Errc::invalid_argument, "there is such a member");
    }
    members_.push_back({.id = added->id,
                        .peer_address = added->peer_address,
                        .client_address = added->client_address});
    return {};
  }
  const auto gone = find(std::get<server::RemoveMember>(change).id);
  if (gone == members_.end() || members_.size() <= 3) {
    return fail(Errc::invalid_argument, "no such member, or too few would be left");
  }
  members_.erase(gone);
  return {};
}

void MemoryStore::transfer_leadership(std::uint64_t to,
                                      std::move_only_function<void(Result<void>)> done) {
  on_loop([this, to, done = std::move(done)]() mutable {
    const auto it = std::ranges::find_if(members_, [&](const server::MemberStatus& member) {
      return member.id != options_.identity.member && (to == 0 || member.id == to);
    });
    if (!log_.is_leader || it == members_.end()) {
      done(fail(log_.is_leader ? Errc::invalid_argument : Errc::unavailable,
                "no successor, or this member is not the leader"));
      return;
    }
    const auto successor = *it;
    change_role(false, successor.id, successor.client_address);
    if (transfer_) {
      transfer_(successor.id);
    }
    done({});
  });
}

Result<server::Decided> MemoryStore::ask(core::Command command) {
  // Shared: a store that is paused decides after we are gone.
  auto answer = std::make_shared<std::optional<Result<server::Decided>>>();
  on_loop_and_wait([this, answer, command = std::move(command)]() mutable {
    take({std::move(command), [answer](auto decided) { *answer = std::move(decided); },
          std::chrono::steady_clock::now()});
  });
  return *answer ? std::move(**answer) : fail(Errc::unavailable, "the store is paused");
}

void MemoryStore::look(const std::function<void(const server::View&)>& looker) {
  on_loop_and_wait([&] { looker(view()); });
}

void MemoryStore::advance(core::ClusterTime by) {
  on_loop_and_wait([this, by] {
    passed_ += by;
    apply({core::Tick{}, [](const Result<server::Decided>&) {}, std::chrono::steady_clock::now()});
  });
}

void MemoryStore::pause() {
  on_loop_and_wait([this] { is_paused_ = true; });
}

std::size_t MemoryStore::kept() {
  std::size_t count = 0;
  on_loop_and_wait([&] { count = kept_.size(); });
  return count;
}

void MemoryStore::resume() {
  on_loop_and_wait([this] {
    is_paused_ = false;
    for (auto& proposal : std::exchange(kept_, {})) {
      apply(std::move(proposal));
    }
  });
}

void MemoryStore::lead(bool leads) {
  on_loop_and_wait([this, leads] {
    const auto self =
        std::ranges::find(members_, options_.identity.member, &server::MemberStatus::id);
    change_role(leads, leads ? options_.identity.member : 0,
                leads && self != members_.end() ? self->client_address : std::string());
  });
}

void MemoryStore::follow(std::uint64_t leader, std::string address) {
  on_loop_and_wait([this, leader, address = std::move(address)]() mutable {
    change_role(false, leader, std::move(address));
  });
}

void MemoryStore::change_role(bool leads, std::uint64_t leader, std::string address) {
  log_.term += leads != log_.is_leader ? 1 : 0;
  log_.is_leader = leads;
  log_.leader = leader;
  log_.leader_address = std::move(address);
  if (!leads) {
    for (auto& proposal : std::exchange(kept_, {})) {
      proposal.decided(fail(Errc::unavailable, "this member lost the leadership"));
    }
  }
  for (auto* listener : listeners_) {
    listener->role_changed(log_);
  }
  arm_expiry();
}

void MemoryStore::set_members(std::vector<server::MemberStatus> members) {
  on_loop_and_wait([this, &members] { members_ = std::move(members); });
}

void MemoryStore::restore_from(MemoryStore& leader) {
  std::optional<core::State> state;
  leader.look([&](const server::View& view) { state = view.state; });
  on_loop_and_wait([this, &state] {
    machine_ = core::StateMachine(*std::move(state));
    for (auto* listener : listeners_) {
      listener->restored(machine_.state());
    }
  });
}

void MemoryStore::fail_reads(std::size_t reads, std::size_t peeks) {
  on_loop_and_wait([this, reads, peeks] {
    failing_reads_ = reads;
    failing_peeks_ = peeks;
  });
}

void MemoryStore::set_space(bool has_space) {
  on_loop_and_wait([this, has_space] { log_.has_space = has_space; });
}

void MemoryStore::on_loop(std::move_only_function<void()> task) {
  // Asio wants to copy what it is given; the task cannot be.
  auto shared = std::make_shared<std::move_only_function<void()>>(std::move(task));
  boost::asio::post(loop_, [shared] { (*shared)(); });
}

void MemoryStore::on_loop_and_wait(std::move_only_function<void()> task) {
  std::promise<void> done;
  on_loop([&] {
    task();
    done.set_value();
  });
  if (done.get_future().wait_for(test_timeout) != std::future_status::ready) {
    throw std::runtime_error("the thread of the store hangs, or was not started");
  }
}

void MemoryStore::take(Proposal proposal) {
  if (is_stopped_ || !log_.is_leader) {
    proposal.decided(fail(Errc::unavailable, "this member is not the leader"));
  } else if (!log_.has_space) {
    proposal.decided(fail(Errc::resource_exhausted, "the disk is full"));
  } else if (is_paused_) {
    kept_.push_back(std::move(proposal));
  } else {
    apply(std::move(proposal));
  }
}

void MemoryStore::apply(Proposal proposal) {
  const auto time = now();
  const auto applied = machine_.apply(proposal.command, {.time = time});
  for (auto* other : others_) {
    other->on_loop(
        [other, command = proposal.command, time] { other->apply_foreign(command, time); });
  }
  log_.commit_index = log_.applied_index = log_.last_index = log_.last_index + 1;
  log_.log_bytes += 64;
  proposal.decided(
      server::Decided{.outcome = applied.outcome, .revision = applied.revision, .term = log_.term});
  tell(applied, std::chrono::steady_clock::now() - proposal.arrived);
  arm_expiry();
}

void MemoryStore::apply_foreign(const core::Command& command, core::ClusterTime time) {
  const auto applied = machine_.apply(command, {.time = time});
  log_.commit_index = log_.applied_index = log_.last_index = log_.last_index + 1;
  tell(applied, {});
}

void MemoryStore::tell(const core::Applied& applied, std::chrono::steady_clock::duration took) {
  for (auto* listener : listeners_) {
    listener->synced(took, 1);
    listener->applied(applied, machine_.state());
    listener->settled();
    listener->committed(took, 1);
  }
}

void MemoryStore::arm_expiry() {
  const auto deadline = machine_.next_deadline();
  if (options_.time != Time::real || !deadline || !log_.is_leader) {
    return;
  }
  expiry_.expires_after(*deadline - now());
  expiry_.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      take({core::Tick{}, [](const Result<server::Decided>&) {}, std::chrono::steady_clock::now()});
    }
  });
}

core::ClusterTime MemoryStore::now() const {
  const auto real = std::chrono::steady_clock::now() - options_.began;
  return passed_ + (options_.time == Time::real
                        ? std::chrono::duration_cast<core::ClusterTime>(real)
                        : core::ClusterTime{});
}

server::View MemoryStore::view() const {
  return {.state = machine_.state(), .log = log_, .now = now(), .members = members_};
}

}  // namespace tenure::test
