#include <algorithm>
#include <utility>

#include "simulation/client.hpp"
#include "simulation/host.hpp"

namespace tenure::simulation {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

history::Item to_history(const core::Item& item) {
  history::Item written{.name = item.name};
  if (const auto* permits = std::get_if<core::Permits>(&item.claim)) {
    written.permits = history::Permits{.wanted = permits->wanted, .capacity = permits->capacity};
    return written;
  }
  written.mode = core::mode_of(item);
  if (const auto* keys = std::get_if<core::Keys>(&item.claim)) {
    written.range = history::Range{.start = keys->range.start(), .end = keys->range.end()};
  }
  return written;
}

void Client::record(history::Kind kind, const Held& held, history::Event event) {
  event.kind = kind;
  event.request = held.id;
  world_.record(std::move(event));
}

void Client::schedule_work() {
  after(world_.random().between<nanoseconds>(1ms, world_.options().think),
        [this] { begin_work(); });
}

void Client::begin_work() {
  if (work_.step != Work::Step::idle || is_retired_) {
    return;
  }
  if (!is_lease_valid()) {
    schedule_work();
    return;
  }
  if (should_read()) {
    read(world_.random().one_in(2) ? "leader" : "rare" + std::to_string(world_.random().index(12)));
  }
  ++work_.number;
  work_.wanted = world_.random().one_in(4) ? 2 : 1;
  acquire_next();
}

std::vector<core::Item> Client::choose_items() {
  auto& random = world_.random();
  const auto name = [&](const char* kind) {
    return kind + std::to_string(random.index(world_.options().names));
  };
  const auto mode = random.one_in(2) ? LockMode::shared : LockMode::exclusive;
  switch (random.below(8)) {
    case 0: return {{.name = name("rw"), .claim = core::Whole{.mode = mode}}};
    case 1: {
      const auto wanted = static_cast<std::uint32_t>(1 + random.below(2));
      return {{.name = name("semaphore"), .claim = core::Permits{.capacity = 3, .wanted = wanted}}};
    }
    case 2: {
      const auto start = static_cast<char>('a' + random.below(8));
      const auto end = static_cast<char>(start + 1 + static_cast<char>(random.below(4)));
      return {{.name = name("space"),
               .claim = core::Keys{
                   .range = *BytesRange::half_open(std::string(1, start), std::string(1, end)),
                   .mode = mode}}};
    }
    case 3: {
      // Several names in one request, all or none.
      std::vector<core::Item> items{{.name = "mutex0", .claim = core::Whole{}},
                                    {.name = "rw0", .claim = core::Whole{.mode = mode}}};
      return items;
    }
    case 4:
      // Leader election: one name for all clients, held for long.
      return {{.name = "leader", .claim = core::Whole{}}};
    case 5:
      // Rare, so that the exhaustive search of the checker stays feasible.
      return {
          {.name = "rare" + std::to_string(random.index(12)), .claim = core::Whole{.mode = mode}}};
    default: return {{.name = name("mutex"), .claim = core::Whole{}}};
  }
}

void Client::acquire_next() {
  auto& random = world_.random();
  Held held;
  held.request = session_->last_request = core::RequestId{session_->last_request.get() + 1};
  held.id = std::to_string(session_->lease.get()) + "/" + std::to_string(held.request.get());
  held.items = choose_items();
  auto again = core::SelfConflict::refuse;
  const auto* first = work_.held.empty() ? nullptr : &work_.held.front();
  if (first != nullptr && first->items.size() == 1 &&
      std::holds_alternative<core::Whole>(first->items.front().claim) && random.one_in(2)) {
    // Upgrade of the same lock from shared to exclusive.
    held.items = first->items;
    core::set_mode(held.items.front(), LockMode::exclusive);
    held.policy = history::WaitPolicy::reenter;
    again = core::SelfConflict::reenter;
  } else if (random.one_in(6)) {
    held.policy = history::WaitPolicy::attempt;
  }
  history::Event event{
      .client = "client " + std::to_string(endpoint_) + "." + std::to_string(life_),
      .owner = std::to_string(session_->lease.get()),
      .policy = held.policy};
  for (const auto& item : held.items) {
    event.items.push_back(to_history(item));
  }
  record(history::Kind::invoke, held, std::move(event));
  work_.step = Work::Step::asking;
  const core::Acquire acquire{
      .lease = session_->lease,
      .request = held.request,
      .items = held.items,
      .queue = held.policy == history::WaitPolicy::attempt ? core::Queue::skip : core::Queue::wait,
      .self_conflict = again};
  work_.held.push_back(std::move(held));
  work_.held.back().question =
      ask(acquire,
          [this, work = work_.number, place = work_.held.size()](const core::Outcome& outcome) {
            if (work == work_.number && place == work_.held.size()) {
              handle_request(outcome);
            }
          });
  acquisitions_[work_.held.back().question] = work_.held.back().id;
  after(random.between<nanoseconds>(200ms, 6s), [this, work = work_.number,
                                                 place = work_.held.size()] {
    if (work == work_.number && place == work_.held.size() && work_.step == Work::Step::asking) {
      time_out();
    }
  });
}

void Client::handle_request(const core::Outcome& outcome) {
  if (work_.step != Work::Step::asking && work_.step != Work::Step::leaving) {
    return;
  }
  if (std::holds_alternative<core::Queued>(outcome)) {
    record(history::Kind::queued, work_.held.back());
  } else if (const auto* granted = std::get_if<core::Granted>(&outcome)) {
    this->granted(*granted);
  } else if (const auto* refused = std::get_if<core::Refused>(&outcome)) {
    switch (refused->error.code) {
      case Errc::deadlock: failed("deadlock"); return;
      case Errc::would_block: failed("would_block"); return;
      case Errc::cancelled: failed("cancelled"); return;
      default: failed("refused"); return;
    }
  } else {
    world_.fail("an acquisition has an outcome of another kind");
  }
}

void Client::granted(const core::Granted& granted) {
  auto& held = work_.held.back();
  ++grants_;
  held.token = granted.token;
  if (held.policy == history::WaitPolicy::reenter) {
    // One hold from here on; the upgrade has issued another token.
    work_.held.front().token = granted.token;
  }
  // L2: validity counts from the last confirmed renewal, not from the arrival of the grant.
  const auto until =
      is_lease_valid() ? real(session_->record->valid_until()) : world_.now().count();
  record(history::Kind::granted, held, {.token = granted.token.get(), .until = until});
  pending_requests_.erase(held.question);
  if (work_.step == Work::Step::leaving || !is_lease_valid()) {
    // Too late: the task has given up.
    release();
    return;
  }
  if (work_.held.size() < work_.wanted) {
    acquire_next();
    return;
  }
  hold();
}

void Client::failed(const std::string& why) {
  auto& held = work_.held.back();
  record(history::Kind::failed, held, {.why = why});
  pending_requests_.erase(held.question);
  work_.held.pop_back();
  if (work_.held.empty()) {
    work_.step = Work::Step::idle;
    schedule_work();
    return;
  }
  work_.wanted = work_.held.size();
  hold();
}

void Client::time_out() {
  auto& held = work_.held.back();
  work_.step = Work::Step::leaving;
  record(history::Kind::leave, held);
  pending_requests_.erase(held.question);
  held.question =
      ask(core::Abandon{.lease = session_->lease, .request = held.request},
          [this, work = work_.number, place = work_.held.size()](const core::Outcome& outcome) {
            if (work == work_.number && place == work_.held.size()) {
              handle_request(outcome);
            }
          });
}

void Client::hold() {
  auto& random = world_.random();
  work_.step = Work::Step::holding;
  if (should_read()) {
    read(work_.held.back().items.front().name);
  }
  const bool is_long = work_.held.front().items.front().name == "leader";
  const auto length = random.between<nanoseconds>(1ms, is_long ? 3s : 300ms);
  const auto is_current = [this, work = work_.number] {
    return work == work_.number && work_.step == Work::Step::holding;
  };
  for (const auto share : {1, 2}) {
    after(length * share / 3, [this, is_current] {
      // L4: compares with the present time.
      if (is_current() && is_lease_valid()) {
        for (const auto& held : work_.held) {
          write_to_storage(held);
        }
      }
    });
  }
  if (random.one_in(5)) {
    after(length / 2, [this, is_current] {
      if (is_current()) {
        downgrade();
      }
    });
  }
  after(length, [this, is_current] {
    if (is_current()) {
      release();
    }
  });
}

void Client::write_to_storage(const Held& held) {
  for (const auto& item : held.items) {
    const auto* whole = std::get_if<core::Whole>(&item.claim);
    if (whole == nullptr || whole->mode != LockMode::exclusive) {
      continue;
    }
    // Sometimes the writer is paused between its clock check and its write: then only the fence
    // protects the storage.
    const VirtualTime longest = world_.random().one_in(12)
                                    ? VirtualTime(world_.options().ttl_max) * 2
                                    : world_.options().network_delay * 4;
    const auto delay = world_.random().between(VirtualTime(100), longest);
    world_.after(delay, [this, name = item.name, token = held.token] {
      const bool is_admitted =
          storage_.fence.admit(name.view(), FencingToken{token.get()}).has_value() ||
          world_.options().mutant == Mutant::storage_unfenced;
      world_.record({.kind = history::Kind::write,
                     .token = token.get(),
                     .resource = name,
                     .is_accepted = is_admitted});
    });
  }
}

void Client::downgrade() {
  auto& held = work_.held.back();
  const auto* whole = std::get_if<core::Whole>(&held.items.front().claim);
  if (work_.held.size() > 1 || held.items.size() > 1 || whole == nullptr ||
      whole->mode != LockMode::exclusive || !is_lease_valid()) {
    return;
  }
  core::set_mode(held.items.front(), LockMode::shared);
  record(history::Kind::downgrade, held, {.items = {to_history(held.items.front())}});
  session_->last_request = core::RequestId{session_->last_request.get() + 1};
  ask(core::Downgrade{.lease = session_->lease,
                      .request = session_->last_request,
                      .token = held.token,
                      .mode = LockMode::shared},
      [](const core::Outcome&) {});
}

void Client::release() {
  auto& held = work_.held.back();
  work_.step = Work::Step::releasing;
  record(history::Kind::release, held);
  session_->last_request = core::RequestId{session_->last_request.get() + 1};
  held.question = ask(
      core::Release{
          .lease = session_->lease, .request = session_->last_request, .what = held.token},
      [this, work = work_.number, place = work_.held.size()](const core::Outcome& outcome) {
        if (work == work_.number && place == work_.held.size()) {
          released(outcome);
        }
      });
}

void Client::released(const core::Outcome& outcome) {
  if (std::holds_alternative<core::Released>(outcome)) {
    record(history::Kind::released, work_.held.back());
    // A released hold must not be visible any more, regardless of the present leader.
    if (should_read()) {
      read(work_.held.back().items.front().name);
    }
  } else {
    const auto* refused = std::get_if<core::Refused>(&outcome);
    world_.fail("a release by its holder was refused: " +
                (refused != nullptr ? to_string(refused->error) : std::string("strange")));
  }
  work_.held.pop_back();
  if (!work_.held.empty()) {
    release();
    return;
  }
  work_.step = Work::Step::idle;
  schedule_work();
}

void Client::abandon_work(const std::string& why) {
  for (const auto& held : work_.held) {
    if (held.token == core::FencingToken{}) {
      record(history::Kind::failed, held, {.why = why});
    }
  }
  ++work_.number;
  work_.held.clear();
  work_.step = Work::Step::idle;
  schedule_work();
}

bool Client::should_read() {
  return world_.random().one_in(3);
}

void Client::read(const std::string& name) {
  const auto number = ++last_number_;
  reads_[number] = {.name = name, .since = world_.now(), .known = checker_.acknowledged()};
  // Sent to any member; only a leader with a confirmed quorum may reply.
  const auto to = world_.options().mutant == Mutant::read_unconfirmed || world_.random().one_in(2)
                      ? world_.random().index(directory_.hosts.size())
                      : server_;
  const Request ask{.client = endpoint_, .number = number, .what = ReadRequest{name}};
  network_.send(endpoint_, to, [this, ask, to] { directory_.hosts[to]->handle_request(ask); });
}

}  // namespace tenure::simulation
