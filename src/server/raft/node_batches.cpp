#include <limits>
#include <numeric>
#include <utility>

#include <boost/asio/post.hpp>

#include "server/raft/node.hpp"

namespace tenure::server::raft {

using std::chrono::steady_clock;

namespace {

// Kept free when the disk is full: for the no-op of some starts, and for time to pass.
constexpr std::size_t log_reserve_bytes = 4096;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

std::size_t beyond(std::size_t left, std::size_t reserve) {
  return left > reserve ? left - reserve : 0;
}

}  // namespace

void Node::propose(core::Command command, Decision decided) {
  const auto bytes = weight(command);
  Proposal proposal{.command = std::move(command), .decided = std::move(decided), .bytes = bytes};
  switch (intake_.push(proposal)) {
    case Intake::Answer::queued: return;
    case Intake::Answer::queued_first: boost::asio::post(loop_, [this] { drain(); }); return;
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

void Node::propose_own(core::Command command) {
  own_commands_.push_back(std::move(command));
  boost::asio::post(loop_, [this] { drain(); });
}

bool Node::may_submit() const {
  return replica_.role() != Role::leader ||
         (is_ready_ && flights_.size() < options_.entries_in_flight_max && is_space_known());
}

// The second half of a segment is begun only when the next one is there, or when it is known that
// it cannot be made: then what is left is rationed.
bool Node::is_space_known() const {
  const auto space = journal_->space();
  return space.is_next_ready || space.is_short || space.left > journal_->segment_bytes() / 2;
}

// One entry of all that waits. What comes while it is on its way waits for the next.
void Node::drain() {
  if (!may_submit()) {
    is_draining_paused_ = true;
    return;
  }
  auto flight = gather();
  if (!flight.batch.commands.empty()) {
    submit(std::move(flight));
    after_event();
  }
  if (!intake_.rest() && !is_draining_paused_) {
    boost::asio::post(loop_, [this] { drain(); });
  }
}

void Node::resume_draining() {
  is_draining_paused_ = false;
  boost::asio::post(loop_, [this] { drain(); });
}

Node::Flight Node::gather() {
  Flight flight;
  flight.proposed = steady_clock::now();
  auto room = this->room();
  if (room.for_all > 0) {
    for (auto& command : std::exchange(own_commands_, {})) {
      flight.batch.commands.push_back(std::move(command));
      flight.decisions.emplace_back();
    }
  } else {
    own_commands_.clear();
    is_tick_on_its_way_ = false;
    no_tick_before_ = flight.proposed + options_.space_retry;
  }
  for (auto& proposal : intake_.take(options_.batch_commands_max, options_.batch_bytes_max)) {
    if (!is_ready_) {
      refuse(std::move(proposal),
             {.code = Errc::unavailable, .detail = "this member does not lead"});
    } else if (!admit(proposal, room)) {
      refuse(std::move(proposal),
             {.code = Errc::resource_exhausted,
              .detail = "the disk of " + options_.folder.string() +
                        " is full; free some space there, the server goes on by itself"});
    } else {
      ++flight.proposals;
      flight.bytes += proposal.bytes;
      flight.batch.commands.push_back(std::move(proposal.command));
      flight.decisions.push_back(std::move(proposal.decided));
    }
  }
  return flight;
}

// While the next segment cannot be made, the second half of the present one is for commands that
// keep or give back what is held.
Node::Room Node::room() const {
  const auto space = journal_->space();
  if (!space.is_short) {
    return {.for_all = no_limit, .for_growing = no_limit};
  }
  const auto on_its_way = std::accumulate(
      flights_.begin(), flights_.end(), std::size_t{0},
      [](std::size_t sum, const Flight& flight) { return sum + flight.bytes + log_reserve_bytes; });
  const auto left = beyond(space.left, on_its_way);
  return {.for_all = beyond(left, log_reserve_bytes),
          .for_growing = beyond(left, journal_->segment_bytes() / 2)};
}

bool Node::admit(const Proposal& proposal, Room& room) const {
  const bool may_come = !may_grow(proposal.command) || room.for_growing > 0;
  const bool fits = may_come && proposal.bytes <= room.for_all;
  if (fits) {
    room.for_all -= std::min(proposal.bytes, room.for_all);
    room.for_growing -= std::min(proposal.bytes, room.for_growing);
  }
  return fits;
}

void Node::refuse(Proposal proposal, Error error) {
  intake_.finished(1, proposal.bytes);
  if (proposal.decided) {
    proposal.decided(std::unexpected(std::move(error)));
  }
}

void Node::submit(Flight flight) {
  flight.batch.stamp.time = clock_.at(flight.proposed);
  flight.term = replica_.term();
  flight.index = next(replica_.log().last());
  auto payload = std::make_shared<const std::string>(core::encode(flight.batch));
  flights_.push_back(std::move(flight));
  if (auto submitted = replica_.submit(std::move(payload)); !submitted) {
    flight = std::move(flights_.back());
    flights_.pop_back();
    give_up(std::move(flight), submitted.error());
  }
}

void Node::give_up(Flight flight, const Error& error) {
  intake_.finished(flight.proposals, flight.bytes);
  is_tick_on_its_way_ = false;
  for (auto& decided : flight.decisions) {
    if (decided) {
      decided(std::unexpected(error));
    }
  }
}

void Node::give_up_all(const Error& error) {
  for (auto& flight : std::exchange(flights_, {})) {
    give_up(std::move(flight), error);
  }
}

void Node::apply_own(Flight flight) {
  intake_.finished(flight.proposals, flight.bytes);
  const auto& commands = flight.batch.commands;
  if (commands.size() > flight.proposals) {
    is_tick_on_its_way_ = false;
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const auto applied = machine_.apply(commands[i], flight.batch.stamp);
    if (flight.decisions[i]) {
      flight.decisions[i](Decided{
          .outcome = applied.outcome, .revision = applied.revision, .term = flight.term.get()});
    }
    tell_applied(applied);
  }
  const auto took = steady_clock::now() - flight.proposed;
  tell_all([&](Listener& listener) {
    listener.settled();
    listener.committed(took, commands.size());
  });
}

void Node::apply_foreign(const Entry& entry) {
  if (entry.type != EntryType::command) {
    return;
  }
  const auto batch = core::decode_batch(*entry.payload);
  if (!batch) {
    stop_process(options_.report,
                 "An entry of the log cannot be read: " + batch.error().detail + ".");
  }
  for (const auto& command : batch->commands) {
    tell_applied(machine_.apply(command, batch->stamp));
  }
  tell_all([](Listener& listener) { listener.settled(); });
}

void Node::tell_applied(const core::Applied& applied) {
  for (auto* listener : listeners_) {
    listener->applied(applied, machine_.state());
  }
}

}  // namespace tenure::server::raft
