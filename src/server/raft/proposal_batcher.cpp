#include "server/raft/proposal_batcher.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace tenure::server::raft {
namespace {

// Reserve on a full disk: for the no-op entries of some restarts, and for Tick commands, which
// expire leases.
constexpr std::size_t log_reserve_bytes = 4096;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

std::size_t beyond(std::size_t left, std::size_t reserve) {
  return left > reserve ? left - reserve : 0;
}

/// Takes the space of the proposal; false: there is not enough.
bool take_room(const Proposal& proposal, ProposalBatcher::Room& room) {
  const bool may_come = !may_grow(proposal.command) || room.for_growing > 0;
  const bool fits = may_come && proposal.bytes <= room.for_all;
  if (fits) {
    room.for_all -= std::min(proposal.bytes, room.for_all);
    room.for_growing -= std::min(proposal.bytes, room.for_growing);
  }
  return fits;
}

}  // namespace

void ProposalBatcher::clear_own() {
  own_.clear();
  own_again_at_.reset();
}

// While the disk writes, the next entry fills: behind the one that is being written it would not be
// durable sooner, and two small entries cost every member more than a large one. A disk that is
// slower than those of the other members delays no entry: what they have is applied without it.
bool ProposalBatcher::is_next_due(std::size_t writing) const {
  return in_flight_.empty() || (writing == 0 && in_flight_.size() < options_.entries_max);
}

// In the first half of a segment there is time to allocate the next one. In the second half,
// admitting commands before the result is known could use up the reserve for renewals and releases.
bool ProposalBatcher::is_space_known(const DiskState& disk) {
  return disk.space.is_next_ready || disk.space.is_short ||
         disk.space.left > disk.segment_bytes / 2;
}

// While the next segment cannot be allocated, the second half of the present one is reserved for
// commands that renew or release.
ProposalBatcher::Room ProposalBatcher::room(const DiskState& disk) const {
  if (!disk.space.is_short) {
    return {.for_all = no_limit, .for_growing = no_limit};
  }
  const auto in_flight = std::accumulate(in_flight_.begin(), in_flight_.end(), std::size_t{0},
                                         [](std::size_t sum, const ProposedEntry& entry) {
                                           return sum + entry.bytes + log_reserve_bytes;
                                         });
  const auto left = beyond(disk.space.left, in_flight);
  return {.for_all = beyond(left, log_reserve_bytes),
          .for_growing = beyond(left, disk.segment_bytes / 2)};
}

ProposalBatcher::Gathered ProposalBatcher::gather(const Room& room, Time now) {
  Gathered gathered;
  if (own_.empty() || room.for_all > 0) {
    own_again_at_.reset();
    gathered.own = std::exchange(own_, {});
  } else {
    retry_own(now);
  }
  gathered.proposals = queue_.take(options_.commands_max, options_.bytes_max);
  return gathered;
}

// Commands of the store itself come first. They may be deferred but are never refused: without the
// Tick that expires leases, waiters would wait for locks of dead holders.
ProposedEntry ProposalBatcher::admit(Gathered gathered, Room room,
                                     const std::optional<Error>& refusal, Time now) {
  ProposedEntry entry;
  entry.proposed = now;
  auto& commands = entry.batch.commands;
  commands.reserve(gathered.own.size() + gathered.proposals.size());
  // One decision per command, in the same order.
  entry.decisions.reserve(gathered.own.size() + gathered.proposals.size());
  for (auto& command : gathered.own) {
    commands.push_back(std::move(command));
    entry.decisions.emplace_back();
  }
  for (auto& proposal : gathered.proposals) {
    if (refusal.has_value()) {
      refuse(std::move(proposal), *refusal);
    } else if (!take_room(proposal, room)) {
      refuse(std::move(proposal),
             {.code = Errc::resource_exhausted,
              .detail = "the disk of " + options_.disk_name +
                        " is full; free some space, the server then continues by itself"});
    } else {
      ++entry.proposals;
      entry.bytes += proposal.bytes;
      commands.push_back(std::move(proposal.command));
      entry.decisions.push_back(std::move(proposal.decided));
    }
  }
  return entry;
}

void ProposalBatcher::refuse(Proposal proposal, Error error) {
  // Before the callback, which may propose again and needs the room.
  queue_.finished(1, proposal.bytes);
  if (proposal.decided) {
    proposal.decided(std::unexpected(std::move(error)));
  }
}

std::optional<ProposedEntry> ProposalBatcher::take_applied(Index index, Term term) {
  if (in_flight_.empty() || in_flight_.front().index != index || in_flight_.front().term != term) {
    return std::nullopt;
  }
  auto entry = std::move(in_flight_.front());
  in_flight_.pop_front();
  queue_.finished(entry.proposals, entry.bytes);
  return entry;
}

void ProposalBatcher::give_up(ProposedEntry entry, const Error& error) {
  queue_.finished(entry.proposals, entry.bytes);
  for (auto& decided : entry.decisions) {
    if (decided) {
      decided(std::unexpected(error));
    }
  }
}

void ProposalBatcher::give_up_all(const Error& error) {
  for (auto& entry : std::exchange(in_flight_, {})) {
    give_up(std::move(entry), error);
  }
}

bool ProposalBatcher::take_retry(Time now) {
  if (!own_again_at_.has_value() || *own_again_at_ > now) {
    return false;
  }
  own_again_at_.reset();
  return true;
}

}  // namespace tenure::server::raft
