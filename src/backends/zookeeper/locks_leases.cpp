#include <algorithm>

#include <zookeeper/zookeeper.h>

#include "backends/zookeeper/faults.hpp"
#include "backends/zookeeper/locks.hpp"
#include "backends/zookeeper/terms.hpp"

// Leases, and the sessions that carry them.

namespace tenure::backends::zookeeper {
namespace {

using Clock = Chores::Clock;

/// Every ttl in use is a session: a connection and two threads.
constexpr std::size_t sessions_max = 16;
/// Of the session that is opened first, and stays: LockOptions::ttl as it is by default.
constexpr milliseconds usual_ttl{30'000};

Error session_ended() {
  return {.code = Errc::lease_lost,
          .detail = "the session at ZooKeeper ended, and all that hung on it; begin anew"};
}

/// Why a session of this timeout does not carry leases of this ttl, if so.
std::optional<Error> refusal_of(milliseconds ttl, milliseconds timeout) {
  const auto asked = timeout_for(ttl);
  const auto told = "ttl is " + std::to_string(ttl.count()) + " ms, and needs a session of " +
                    std::to_string(asked.count()) + " ms; the servers give ";
  if (timeout > asked) {
    return Error{.code = Errc::invalid_argument,
                 .detail = told + "at least " + std::to_string(timeout.count()) +
                           " ms (minSessionTimeout): a ttl of " +
                           std::to_string(shortest_ttl(timeout).count() + 1) + " ms or more"};
  }
  if (timeout < asked && longest_ttl(timeout) < ttl) {
    return Error{.code = Errc::invalid_argument,
                 .detail = told + "at most " + std::to_string(timeout.count()) +
                           " ms (maxSessionTimeout): a ttl of " +
                           std::to_string(longest_ttl(timeout).count()) + " ms or less"};
  }
  return std::nullopt;
}

}  // namespace

// Sessions.

void Locks::open() {
  main_seat_ = new_seat(usual_ttl).number;
}

void Locks::listen(Listener* listener) {
  listener_ = listener;
  tell_connection();
}

Locks::Seat* Locks::seat_for(milliseconds ttl) {
  for (auto& [number, seat] : seats_) {
    if (seat.ttl == ttl) {
      return &seat;
    }
  }
  if (seats_.size() >= sessions_max) {
    const auto idle = std::ranges::find_if(seats_, [&](const auto& entry) {
      return entry.second.leases.empty() && entry.first != main_seat_;
    });
    if (idle == seats_.end()) {
      return nullptr;
    }
    retire(idle->first);
  }
  return &new_seat(ttl);
}

Locks::Seat& Locks::new_seat(milliseconds ttl) {
  const Number number = ++last_number_;
  auto& seat = seats_[number];
  seat.number = number;
  seat.ttl = ttl;
  seat.idle_since = Clock::now();
  seat.session = std::make_unique<Session>(
      Session::Surroundings{.desk = around_.desk,
                            .chores = around_.chores,
                            .later =
                                [this, number](Clock::time_point when, Desk::Job job) {
                                  later(when, [this, number, job = std::move(job)]() mutable {
                                    if (seats_.contains(number)) {
                                      job();
                                    }
                                  });
                                }},
      timeout_for(ttl),
      Session::Calls{
          .changed = [this, number](Link::State state) { seat_changed(number, state); },
          .taken = [this, number](ClaimId claim) { taken(number, claim); },
          .children = [this, number](const std::string& folder) { room_changed(number, folder); }});
  // It asks for addresses. Whoever ends the session does that after this job.
  around_.chores.soon([this, number, session = seat.session.get()] {
    if (const auto opened = session->link().open(around_.address, session->asked()); !opened) {
      around_.desk.serve([&] { seat_over(number, opened.error()); });
    }
  });
  beat(number);
  return seat;
}

void Locks::seat_changed(Number number, Link::State state) {
  const auto it = seats_.find(number);
  if (it == seats_.end()) {
    return;
  }
  switch (state) {
    case Link::State::connected: seat_connected(it->second); break;
    case Link::State::connecting: break;
    case Link::State::expired: seat_over(number, session_ended()); break;
    case Link::State::refused:
      seat_over(number, {.code = Errc::permission_denied,
                         .detail = hosts_of(around_.address) +
                                   ": the servers do not accept user and password"});
      break;
  }
  tell_connection();
}

void Locks::seat_connected(Seat& seat) {
  if (!seat.is_good) {
    seat.refusal = refusal_of(seat.ttl, seat.session->link().timeout());
    if (seat.refusal && seat.number != main_seat_) {
      seat_over(seat.number, *seat.refusal);
      return;
    }
    seat.is_good = !seat.refusal;
    answer_grants(seat, seat.refusal);
  }
  if (seat.number == main_seat_) {
    around_.opened({});
  }
}

void Locks::answer_grants(Seat& seat, const std::optional<Error>& why) {
  for (auto& [lease, done] : std::exchange(seat.unanswered, {})) {
    around_.outbox.tell<void>(std::move(done), why ? std::unexpected(*why) : Result<void>());
  }
}

/// Everything that hung on it is over.
void Locks::seat_over(Number number, const Error& reason) {
  const auto it = seats_.find(number);
  if (it == seats_.end()) {
    return;
  }
  const auto why = reason;  // It may be the seat's own.
  auto& seat = it->second;
  std::vector<LeaseId> leases;
  std::vector<LeaseId> movable;
  for (const auto id : seat.leases) {
    const bool may_move = seat.is_good && why.code == Errc::lease_lost && can_move(leases_.at(id));
    (may_move ? movable : leases).push_back(id);
  }
  std::vector<Number> holds;
  for (const auto& [one, hold] : holds_) {
    if (hold->seat == number && std::ranges::find(movable, hold->lease) == movable.end()) {
      holds.push_back(one);
    }
  }
  // A lease that was never granted is refused, and not lost: its waits say why.
  const bool was_good = seat.is_good;
  answer_grants(seat, why);
  retire(number);
  std::ranges::sort(holds);
  for (const auto one : holds) {
    auto& hold = *find(one);
    settle(hold, std::unexpected(was_good ? session_ended() : why));
    auto told = std::move(hold.when_gone);
    forget(one);
    for (auto& gone : told) {
      gone(fail(Errc::not_held));
    }
  }
  for (const auto lease : leases) {
    leases_.erase(lease);
    if (listener_ != nullptr && was_good) {
      around_.outbox.add([listener = listener_, lease] { listener->lease_lost(lease); });
    }
  }
  for (const auto& [one, inquiry] : std::exchange(inquiries_, {})) {
    inquire_ended(*inquiry);
  }
  if (number == main_seat_ && !is_over_) {
    main_seat_ = 0;
    reopen(why);
  }
  for (const auto lease : movable) {
    move(lease);
  }
}

bool Locks::can_move(const Lease& lease) {
  return std::ranges::all_of(lease.holds, [this](Number number) {
    const auto& hold = *find(number);
    return !hold.granted && !hold.is_leaving && !hold.is_gate_ours &&
           !session_of(hold)->is_there(hold.claim);
  });
}

void Locks::move(LeaseId id) {
  auto& lease = leases_.at(id);
  auto* const seat = seat_for(lease.ttl);
  if (seat == nullptr) {
    return;  // It ends by its time. There was a session for it, so this does not happen.
  }
  seat->leases.push_back(id);
  lease.seat = seat->number;
  for (const auto number : std::vector<Number>(lease.holds)) {
    auto& hold = *find(number);
    by_claim_.erase({hold.seat, hold.claim});
    hold.seat = seat->number;
    begin(number);
  }
}

/// One session is always there, or will be.
void Locks::reopen(const Error& why) {
  constexpr std::chrono::seconds pause{1};
  around_.opened(std::unexpected(why));
  if (why.code == Errc::lease_lost) {
    main_seat_ = new_seat(usual_ttl).number;
    return;
  }
  later(Clock::now() + pause, [this] { main_seat_ = new_seat(usual_ttl).number; });
}

/// Nobody asks it any more; it is closed where that may take its time.
void Locks::retire(Number number) {
  const auto it = seats_.find(number);
  it->second.session->end();
  around_.chores.soon([session = std::move(it->second.session)] {});
  seats_.erase(it);
}

/// A sign of life; docs/decisions/0020 says why the C client's own are too rare.
void Locks::beat(Number number) {
  const auto it = seats_.find(number);
  if (it == seats_.end()) {
    return;
  }
  auto& seat = it->second;
  const auto now = Clock::now();
  const bool is_idle = seat.leases.empty() && number != main_seat_;
  if (is_idle && now > seat.idle_since + seat.session->asked()) {
    retire(number);
    return;
  }
  auto timeout = seat.session->asked();
  if (seat.session->is_connected()) {
    seat.session->link().sync([](const Reply&) {});
    timeout = std::min(timeout, seat.session->link().timeout());  // They may give less.
  }
  later(now + beat_of(timeout), [this, number] { beat(number); });
}

void Locks::tell_connection() {
  const auto main = seats_.find(main_seat_);
  const bool is_connected = main != seats_.end() && main->second.session->is_connected();
  if (listener_ == nullptr || is_told_connected_ == is_connected) {
    return;
  }
  is_told_connected_ = is_connected;
  around_.outbox.add([listener = listener_, is_connected] {
    listener->connection_changed(is_connected, is_connected ? "" : "the connection broke");
  });
}

void Locks::later(Clock::time_point when, Desk::Job job) {
  around_.chores.at(when, [this, job = std::move(job)]() mutable {
    around_.desk.serve([&] {
      if (!is_over_) {
        job();
      }
    });
  });
}

// Leases.

void Locks::grant_lease(const LeaseRequest& request, Backend::Done<void> done) {
  auto* const seat = seat_for(request.ttl);
  if (seat == nullptr) {
    around_.outbox.tell<void>(
        std::move(done),
        fail(Errc::resource_exhausted,
             "each ttl in use is a session of its own at ZooKeeper, and this client has " +
                 std::to_string(sessions_max) + " of them; use fewer different ttl"));
    return;
  }
  seat->leases.push_back(request.id);
  auto& lease = leases_[request.id];
  lease = {.ttl = request.ttl, .seat = seat->number, .deadline = Clock::now() + request.ttl};
  later(lease.deadline, [this, id = request.id] { watch_deadline(id); });
  if (seat->is_good) {
    around_.outbox.tell<void>(std::move(done), {});
  } else if (seat->refusal) {
    around_.outbox.tell<void>(std::move(done), std::unexpected(*seat->refusal));
  } else {
    seat->unanswered.emplace_back(request.id, std::move(done));
  }
}

/// One batch of leases, by a question for each session.
struct Locks::Renewal {
  Renewed alive{};
  Backend::Done<Renewed> done{};
  std::optional<Error> doubt{};
  std::size_t parts = 1;  ///< Not answered; 1 for the asking itself.

  void part_done(Outbox& outbox) {
    if (--parts > 0) {
      return;
    }
    outbox.tell<Renewed>(std::move(done),
                         doubt ? Result<Renewed>(std::unexpected(*doubt)) : std::move(alive));
  }
};

void Locks::renew(std::vector<LeaseId> leases, Backend::Done<Renewed> done) {
  const auto renewal = std::make_shared<Renewal>();
  renewal->alive.assign(leases.size(), false);
  renewal->done = std::move(done);
  std::map<Number, std::vector<std::size_t>> parts;
  for (std::size_t index = 0; index < leases.size(); ++index) {
    const auto it = leases_.find(leases[index]);
    if (it == leases_.end()) {
      continue;
    }
    it->second.deadline = Clock::now() + it->second.ttl;
    parts[it->second.seat].push_back(index);
  }
  for (auto& [seat, indexes] : parts) {
    renew_part(renewal, seat, std::move(indexes));
  }
  renewal->part_done(around_.outbox);
}

void Locks::renew_part(const std::shared_ptr<Renewal>& renewal, Number seat,
                       std::vector<std::size_t> indexes) {
  auto& session = *seats_.at(seat).session;
  if (!session.is_connected()) {
    renewal->doubt = {.code = Errc::unavailable, .detail = "no connection to ZooKeeper"};
    return;
  }
  ++renewal->parts;
  // To the leader, which is the one to say whether the session lives; a server that is cut off from
  // the others would say yes for a while.
  session.link().sync([this, renewal, indexes = std::move(indexes)](const Reply& reply) {
    if (reply.code == ZOK) {
      for (const auto index : indexes) {
        renewal->alive[index] = true;
      }
    } else if (reply.code != ZSESSIONEXPIRED) {
      renewal->doubt = error_from(reply.code, hosts_of(around_.address));
    }
    renewal->part_done(around_.outbox);
  });
}

void Locks::watch_deadline(LeaseId id) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    return;
  }
  if (it->second.deadline > Clock::now()) {
    later(it->second.deadline, [this, id] { watch_deadline(id); });
    return;
  }
  // Nobody renewed it. The session lives on, and others with it.
  if (listener_ != nullptr) {
    around_.outbox.add([listener = listener_, id] { listener->lease_lost(id); });
  }
  revoke(id, [](const Result<void>&) {});
}

void Locks::revoke(LeaseId id, Backend::Done<void> done) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) {
    around_.outbox.tell<void>(std::move(done), {});
    return;
  }
  const auto lease = std::move(it->second);
  leases_.erase(it);
  auto& seat = seats_.at(lease.seat);
  std::erase(seat.leases, id);
  seat.idle_since = Clock::now();
  for (auto& [waiting, granted] : seat.unanswered) {
    if (waiting == id) {
      around_.outbox.tell<void>(std::move(granted), std::unexpected(session_ended()));
    }
  }
  std::erase_if(seat.unanswered, [&](const auto& one) { return one.first == id; });
  struct Parts {
    Backend::Done<void> done;
    std::size_t left;
    Result<void> result{};
  };
  const auto parts = std::make_shared<Parts>(std::move(done), lease.holds.size() + 1);
  const auto part_done = [this, parts](const Result<void>& answer) {
    if (!answer && answer.error() != Errc::not_held) {
      parts->result = answer;
    }
    if (--parts->left == 0) {
      around_.outbox.tell<void>(std::move(parts->done), std::move(parts->result));
    }
  };
  for (const auto number : lease.holds) {
    settle(*find(number), fail(Errc::lease_lost, "the lease of this wait ended; ask again"));
    leave(number, part_done);
  }
  part_done({});
}

void Locks::end() {
  is_over_ = true;
  listener_ = nullptr;
  const Error ends{.code = Errc::unavailable, .detail = "the client ends"};
  std::vector<Number> numbers;
  for (auto& [number, seat] : seats_) {
    seat.is_good = false;  // What is told is why, and not that a session was lost.
    numbers.push_back(number);
  }
  for (const auto& [one, inquiry] : std::exchange(inquiries_, {})) {
    inquire_ended(*inquiry);
  }
  for (auto& [number, hold] : holds_) {
    settle(*hold, std::unexpected(ends));
    for (auto& gone : std::exchange(hold->when_gone, {})) {
      gone(std::unexpected(ends));
    }
  }
  for (auto& [number, seat] : seats_) {
    answer_grants(seat, ends);
    seat.session->end();
  }
}

std::vector<Session*> Locks::sessions() {
  std::vector<Session*> all;
  for (auto& [number, seat] : seats_) {
    all.push_back(seat.session.get());
  }
  return all;
}

}  // namespace tenure::backends::zookeeper
