#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "server/raft/participant.hpp"

namespace tenure::server::raft {

namespace {

// Kept free when the disk is full: for the no-op of some starts, and for time to pass.
constexpr std::size_t log_reserve_bytes = 4096;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

std::size_t beyond(std::size_t left, std::size_t reserve) {
  return left > reserve ? left - reserve : 0;
}

}  // namespace

void Participant::propose_own(core::Command command) {
  own_commands_.push_back(std::move(command));
  surroundings_.drain_soon();
}

// While our disk writes, the next entry fills: behind the one that is being written it would not be
// durable sooner, and two small ones cost every member more than a large one. A disk that is slower
// than the others' keeps nobody waiting: what they have is through without it.
bool Participant::may_submit() const {
  const bool is_next_due =
      flights_.empty() || (writing_ == 0 && flights_.size() < options_.entries_in_flight_max);
  return replica_.role() != Role::leader ||
         (is_ready_ && !transfer_.has_value() && !is_version_on_its_way_ && is_next_due &&
          is_space_known());
}

// The second half of a segment is begun only when the next one is there, or when it is known that
// it cannot be made: then what is left is rationed.
bool Participant::is_space_known() const {
  const auto [space, segment_bytes, log_bytes] = surroundings_.disk();
  return space.is_next_ready || space.is_short || space.left > segment_bytes / 2;
}

// One entry of all that waits. What comes while it is on its way waits for the next.
void Participant::drain(Time now) {
  arrive(now);
  if (!may_submit()) {
    is_draining_paused_ = true;
    return;
  }
  if (submit_gathered()) {
    settle();
  }
}

bool Participant::submit_gathered() {
  if (version_to_set_.has_value() && room().for_all > 0) {
    submit_version();
    return true;
  }
  auto flight = gather();
  if (version_to_set_.has_value()) {
    own_again_at_ = now_ + options_.space_retry;
  }
  const bool is_any = !flight.batch.commands.empty();
  if (is_any) {
    submit(std::move(flight));
  }
  return is_any;
}

void Participant::rest() {
  if (!is_draining_paused_ && !intake_.rest()) {
    surroundings_.drain_soon();
  }
}

void Participant::resume_draining() {
  is_draining_paused_ = false;
  surroundings_.drain_soon();
}

Participant::Flight Participant::gather() {
  Flight flight;
  auto room = this->room();
  if (own_commands_.empty() || room.for_all > 0) {
    own_again_at_.reset();
    for (auto& command : std::exchange(own_commands_, {})) {
      flight.batch.commands.push_back(std::move(command));
      flight.decisions.emplace_back();
    }
  } else {
    own_again_at_ = now_ + options_.space_retry;
  }
  auto proposals = intake_.take(options_.batch_commands_max, options_.batch_bytes_max);
  // Only now, because other threads push until the moment before: a lease that was asked for after
  // the stamp would end early by the difference.
  arrive(surroundings_.local_time());
  flight.proposed = now_;
  flight.batch.commands.reserve(flight.batch.commands.size() + proposals.size());
  flight.decisions.reserve(flight.decisions.size() + proposals.size());
  for (auto& proposal : proposals) {
    if (!is_ready_) {
      refuse(std::move(proposal), not_leading());
    } else if (!admit(proposal, room)) {
      refuse(std::move(proposal),
             {.code = Errc::resource_exhausted,
              .detail = "the disk of " + options_.disk_name +
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
Participant::Room Participant::room() const {
  const auto [space, segment_bytes, log_bytes] = surroundings_.disk();
  if (!space.is_short) {
    return {.for_all = no_limit, .for_growing = no_limit};
  }
  const auto on_its_way = std::accumulate(
      flights_.begin(), flights_.end(), std::size_t{0},
      [](std::size_t sum, const Flight& flight) { return sum + flight.bytes + log_reserve_bytes; });
  const auto left = beyond(space.left, on_its_way);
  return {.for_all = beyond(left, log_reserve_bytes),
          .for_growing = beyond(left, segment_bytes / 2)};
}

bool Participant::admit(const Proposal& proposal, Room& room) const {
  const bool may_come = !may_grow(proposal.command) || room.for_growing > 0;
  const bool fits = may_come && proposal.bytes <= room.for_all;
  if (fits) {
    room.for_all -= std::min(proposal.bytes, room.for_all);
    room.for_growing -= std::min(proposal.bytes, room.for_growing);
  }
  return fits;
}

void Participant::refuse(Proposal proposal, Error error) {
  intake_.finished(1, proposal.bytes);
  if (proposal.decided) {
    proposal.decided(std::unexpected(std::move(error)));
  }
}

void Participant::submit(Flight flight) {
  flight.batch.stamp.time = clock_.at(flight.proposed);
  flight.batch.version = std::max(flight.batch.version, machine_.state().version);
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

void Participant::give_up(Flight flight, const Error& error) {
  intake_.finished(flight.proposals, flight.bytes);
  is_tick_on_its_way_ = false;
  for (auto& decided : flight.decisions) {
    if (decided) {
      decided(std::unexpected(error));
    }
  }
}

void Participant::give_up_flights(const Error& error) {
  for (auto& flight : std::exchange(flights_, {})) {
    give_up(std::move(flight), error);
  }
}

void Participant::apply_own(Flight flight) {
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
  const auto took = now_ - flight.proposed;
  for (auto* listener : listeners_) {
    listener->settled();
    listener->committed(took, commands.size());
  }
}

void Participant::apply_foreign(const Entry& entry) {
  if (entry.type != EntryType::command) {
    return;
  }
  const auto batch = core::decode_batch(*entry.payload);
  if (!batch) {
    surroundings_.fatal("an entry of the log cannot be read: " + batch.error().detail);
    return;
  }
  for (const auto& command : batch->commands) {
    tell_applied(machine_.apply(command, batch->stamp));
  }
  for (auto* listener : listeners_) {
    listener->settled();
  }
}

void Participant::tell_applied(const core::Applied& applied) {
  for (auto* listener : listeners_) {
    listener->applied(applied, machine_.state());
  }
}

}  // namespace tenure::server::raft
