#include "server/raft/compaction.hpp"

#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "core/batch.hpp"
#include "core/snapshot.hpp"

namespace tenure::server::raft {
namespace {

Result<core::StateMachine> restore(Index previous, const SnapshotFile& file) {
  if (previous == Index{}) {
    return core::StateMachine();
  }
  const auto snapshot = file.read();
  if (!snapshot) {
    return std::unexpected(snapshot.error());
  }
  if (!snapshot->has_value() || (*snapshot)->mark.index != previous) {
    return fail(Errc::unavailable, "the snapshot of entry " + std::to_string(previous.get()) +
                                       " is not there any more");
  }
  auto state = core::decode(*(*snapshot)->body);
  if (!state) {
    return std::unexpected(std::move(state).error());
  }
  return core::StateMachine(std::move(*state));
}

// A background task: whoever waits for a lock goes first.
void yield_to_others() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
}

}  // namespace

Result<void> replay(core::StateMachine& machine, const Entry& entry) {
  if (entry.type != EntryType::command) {
    return {};
  }
  const auto batch = core::decode_batch(*entry.payload);
  if (!batch) {
    return std::unexpected(batch.error());
  }
  for (const auto& command : batch->commands) {
    static_cast<void>(machine.apply(command, batch->stamp));
  }
  return {};
}

Result<std::size_t> compact(const CompactionPlan& plan, SnapshotFile& file) {
  auto machine = restore(plan.previous, file);
  if (!machine) {
    return std::unexpected(std::move(machine).error());
  }
  for (const auto& entry : plan.entries) {
    if (auto replayed = replay(*machine, entry); !replayed) {
      return std::unexpected(std::move(replayed).error());
    }
  }
  const auto body = core::encode(machine->state());
  if (auto written = file.write(plan.mark, body); !written) {
    return std::unexpected(std::move(written).error());
  }
  return body.size();
}

void Compactor::begin(CompactionPlan plan, Finished finished) {
  // Assigning waits for the end of the former thread, which has nothing left to do.
  thread_ = std::jthread([this, plan = std::move(plan), finished = std::move(finished)]() mutable {
    yield_to_others();
    auto result = compact(plan, file_);
    plan = {};
    finished(std::move(result));
  });
}

}  // namespace tenure::server::raft
