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

/// The disk of one host: vote, snapshot, and the log in segments as `server/raft/record` encodes
/// them. A crash loses what was not synced; of the write that was under way any sectors may have
/// arrived. Sectors decay: one copy of what is stored twice must not matter, and a record that was
/// acknowledged must be missed. Does what server/raft's Journal, Disk, VoteFile and SnapshotFile do
/// on real files.
class Disk {
 public:
  explicit Disk(World& world)
      : world_(world), delay_(world.options().disk_delay), decay_(world.options().seed) {
    vote_slots_.fill(server::raft::encode_vote_slot({}));
  }

  /// What a member finds. Fails the run if the log cannot be read.
  struct Found {
    server::raft::Recovered recovered;
    std::optional<server::raft::Snapshot> snapshot;
  };
  [[nodiscard]] Found load();
  /// A new member of a group that begins with this entry.
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

  /// Called when so many of the oldest operations are done.
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
    server::raft::Index last{};  ///< The greatest in it.
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
  Random decay_;  ///< Of its own: what decays changes nothing else in a run.
  std::function<void(std::size_t)> done_;

  // What survives.
  server::raft::Vote vote_{};  ///< What was confirmed, to compare with what is read.
  std::uint64_t votes_ = 0;    ///< Writes to the vote file.
  std::array<std::string, server::raft::vote_slot_count> vote_slots_;
  bool is_vote_whole_ = true;              ///< Both slots hold the last vote.
  server::raft::LogEnd durable_{};         ///< As the kernel has it.
  server::raft::LogEnd durable_synced_{};  ///< As a power failure leaves it.
  std::optional<server::raft::Snapshot> snapshot_;
  std::map<std::uint64_t, Segment> segments_;
  // For a disk that lies.
  server::raft::VoteSlot former_vote_{};
  std::string former_state_;  ///< Of the snapshot before.

  // What does not.
  std::uint64_t life_ = 0;
  server::raft::GroupWriter writer_;
  std::uint64_t segment_ = 0;  ///< The present one.
  std::deque<Operation> queue_;
  std::variant<std::monostate, Write, server::raft::Snapshot> under_way_;
};

}  // namespace tenure::simulation
