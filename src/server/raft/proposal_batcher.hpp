#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <tenure/error.hpp>

#include "core/batch.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/proposal_queue.hpp"
#include "server/raft/space.hpp"
#include "server/raft/time.hpp"
#include "server/store/store.hpp"

namespace tenure::server::raft {

struct ProposalBatcherOptions {
  ProposalQueue::Limits in_flight{};
  /// Limits of one entry.
  std::size_t commands_max = 4096;
  std::size_t bytes_max = std::size_t{1} << 20;
  /// Maximum number of entries in flight.
  std::size_t entries_max = 2;
  std::string disk_name = "this member";  ///< Name of the disk in the error of a full one.
  /// Time after which own commands that found no space are gathered again.
  std::chrono::milliseconds space_retry{1000};
};

/// An entry of this leader, from its proposal until it is applied.
struct ProposedEntry {
  Index index{};
  Term term{};
  core::Batch batch{};
  std::vector<Store::Decision> decisions{};  ///< One for each command; may be empty.
  std::size_t proposals = 0;                 ///< Number of commands that came through the queue.
  std::size_t bytes = 0;                     ///< Size of these commands as the queue counts it.
  Time proposed{};
};

/// Group commit: gathers the commands that wait into one entry, while the disk writes the last one.
/// Admits commands by the space that is left for the log, and keeps entries in flight until they
/// are applied or given up. Each decision is called once. Submits nothing itself. Not thread safe,
/// except queue().
class ProposalBatcher {
 public:
  /// Bytes of the log that commands may take: everything, or the rest of a full disk.
  struct Room {
    std::size_t for_all{};      ///< For commands that only keep or release.
    std::size_t for_growing{};  ///< For commands that make the state larger.
  };
  struct Gathered {
    std::vector<core::Command> own;
    std::vector<Proposal> proposals;
  };

  explicit ProposalBatcher(const ProposalBatcherOptions& options)
      : options_(options), queue_(options.in_flight) {}

  /// Queue of commands from all threads.
  [[nodiscard]] ProposalQueue& queue() noexcept { return queue_; }
  /// Adds a command of the store itself to the next entry.
  void add_own(core::Command command) { own_.push_back(std::move(command)); }
  [[nodiscard]] bool has_own() const noexcept { return !own_.empty(); }
  void clear_own();

  /// Whether the next entry may be made now. `writing`: number of unfinished disk operations.
  [[nodiscard]] bool is_next_due(std::size_t writing) const;
  /// Whether it is known if there is a next segment. The second half of a segment is begun only
  /// then: without a next one its space is rationed.
  [[nodiscard]] static bool is_space_known(const DiskState& disk);
  [[nodiscard]] Room room(const DiskState& disk) const;

  /// Takes the commands of the next entry. Proposals of other threads are taken up to the moment
  /// of the call.
  [[nodiscard]] Gathered gather(const Room& room, Time now);
  /// Makes the entry. Refuses all proposals with `refusal`, if given, and those that find no room.
  /// REQUIRES: `now` is not before the moment of gather(), or leases would end early.
  [[nodiscard]] ProposedEntry admit(Gathered gathered, Room room,
                                    const std::optional<Error>& refusal, Time now);
  void refuse(Proposal proposal, Error error);

  /// The entry is in the log.
  void add_in_flight(ProposedEntry entry) { in_flight_.push_back(std::move(entry)); }
  /// The entry in flight that is applied next; empty: the entry at this place is not of this
  /// leadership.
  [[nodiscard]] std::optional<ProposedEntry> take_applied(Index index, Term term);
  void give_up(ProposedEntry entry, const Error& error);
  void give_up_all(const Error& error);

  /// Gathering stops until resume(): an entry is in flight.
  void pause() noexcept { is_paused_ = true; }
  void resume() noexcept { is_paused_ = false; }
  [[nodiscard]] bool is_paused() const noexcept { return is_paused_; }
  /// Whether commands have arrived since gather(), and gathering is not paused. If not, the next
  /// push to the queue returns `queued_first`.
  [[nodiscard]] bool has_more() { return !is_paused_ && !queue_.go_idle(); }

  /// Own commands are gathered again after a pause.
  void retry_own(Time now) { own_again_at_ = now + options_.space_retry; }
  /// True once, when that pause is over.
  [[nodiscard]] bool take_retry(Time now);
  [[nodiscard]] std::optional<Time> deadline() const { return own_again_at_; }

 private:
  /// Limits of entries and of the queue.
  const ProposalBatcherOptions options_;
  ProposalQueue queue_;
  /// Commands of the store itself for the next entry.
  std::vector<core::Command> own_;
  std::optional<Time> own_again_at_;  ///< Set when own commands found no space.
  /// Entries in the log that are not applied, oldest first.
  std::deque<ProposedEntry> in_flight_;
  /// Whether gathering waits for resume().
  bool is_paused_ = false;
};

}  // namespace tenure::server::raft
