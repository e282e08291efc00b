#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/raft/compaction.hpp"
#include "server/raft/durable_end.hpp"
#include "server/raft/entry.hpp"
#include "server/raft/record.hpp"
#include "server/raft/replica.hpp"
#include "server/raft/vote_slots.hpp"
#include "simulation/random.hpp"
#include "simulation/world.hpp"

namespace tenure::simulation {

/// Simulated disk of one host: vote, snapshot, and the log in segments in the format of
/// `server/raft/record`. A crash loses unsynced writes and tears the write in progress at any
/// sector. Sectors decay: the decay of one copy of the vote must be harmless, and that of an
/// acknowledged record must be detected. Stands for Journal, Disk, VoteFile and SnapshotFile of
/// server/raft.
class Disk {
 public:
  explicit Disk(World& world)
      : world_(world), delay_(world.options().disk_delay), decay_(world.options().seed) {
    vote_slots_.fill(server::raft::encode_vote_slot({}));
  }

  /// Contents after a restart. load() fails the run if the log is unreadable.
  struct Found {
    server::raft::Recovered recovered;
    std::optional<server::raft::Snapshot> snapshot;
  };
  [[nodiscard]] Found load();
  /// Initialises the disk of a new member of a group with this first entry.
  void bootstrap(const server::raft::Entry& first);

  void save_vote(server::raft::Term term, server::raft::MemberId voted_for);
  void append(server::raft::Index first, const std::vector<server::raft::Entry>& entries);
  void install(const server::raft::Snapshot& snapshot);
  void cut(server::raft::Index last);
  using Compacted = std::function<void(Result<std::size_t>)>;
  void compact(server::raft::CompactionPlan plan, Compacted done);
  [[nodiscard]] const std::optional<server::raft::Snapshot>& snapshot() const noexcept {
    return snapshot_;
  }
  [[nodiscard]] std::uint64_t log_bytes() const;

  /// Sets the callback for finished operations; its argument is their number.
  void when_done(std::function<void(std::size_t)> done) { done_ = std::move(done); }
  void set_delay(VirtualTime delay) { delay_ = delay; }
  void crash();

 private:
  struct Append {
    server::raft::Index first{};
    std::vector<server::raft::Entry> entries;
  };
  struct Cut {
    server::raft::Index last{};
  };
  using Operation = std::variant<Append, server::raft::Snapshot, Cut>;
  struct Segment {
    std::string bytes;
    server::raft::Index last{};  ///< Largest index in it.
  };
  struct Write {
    std::uint64_t segment{};
    std::size_t offset{};
    std::string bytes;
  };

  [[nodiscard]] VirtualTime delay();
  void push(Operation operation);
  void begin();
  [[nodiscard]] Write encode(const std::vector<Append>& appends);
  void begin_segment(std::size_t bytes_min);
  void tear(const Write& write);
  void install_now(const server::raft::Snapshot& snapshot);
  void cut_now(server::raft::Index last);
  void put(const server::raft::Snapshot& snapshot);
  [[nodiscard]] std::string make_snapshot(const server::raft::CompactionPlan& plan);
  void take_record(const server::raft::Record& record, Found& found);
  void write_votes(const server::raft::VoteSlot& slot, std::size_t slots);
  void tear_vote();
  [[nodiscard]] bool load_vote(server::raft::Recovered& recovered);
  [[nodiscard]] std::size_t durable_offset(std::uint64_t segment) const;
  void check_decayed_log();
  void settle_with_snapshot(Found& found);

  World& world_;
  VirtualTime delay_;
  Random decay_;  ///< Own random source, so that decay does not change the rest of a run.
  std::function<void(std::size_t)> done_;

  // State that survives a crash.
  server::raft::Vote vote_{};  ///< Confirmed vote, compared with the one that is read.
  std::uint64_t votes_ = 0;    ///< Number of writes to the vote file.
  std::array<std::string, server::raft::vote_slot_count> vote_slots_;
  bool is_vote_whole_ = true;              ///< Whether both slots hold the last vote.
  server::raft::LogEnd durable_{};         ///< Durable end in the page cache.
  server::raft::LogEnd durable_synced_{};  ///< Durable end after a power failure.
  std::optional<server::raft::Snapshot> snapshot_;
  std::map<std::uint64_t, Segment> segments_;
  // State of planted defects.
  server::raft::VoteSlot former_vote_{};
  std::string former_state_;  ///< State of the previous snapshot.

  // State that a crash destroys.
  std::uint64_t life_ = 0;
  server::raft::GroupWriter writer_;
  std::uint64_t segment_ = 0;  ///< Number of the present segment.
  std::deque<Operation> queue_;
  std::variant<std::monostate, Write, server::raft::Snapshot> under_way_;
};

}  // namespace tenure::simulation
