#include "server/raft/compaction.hpp"

#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "core/batch.hpp"

namespace tenure::server::raft {
namespace {

// A background task: whoever waits for a lock goes first.
void yield_to_others() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
}

// The image goes as soon as possible: until then whatever changes is copied first.
Result<void> write(CompactionPlan plan, SnapshotFile& file) {
  const auto body = core::encode(std::exchange(plan.image, {}));
  return file.write(plan.mark, body);
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

void Compactor::begin(CompactionPlan plan, Finished finished) {
  // Assigning waits for the end of the former thread, which has nothing left to do.
  thread_ = std::jthread([this, plan = std::move(plan), finished = std::move(finished)]() mutable {
    yield_to_others();
    auto result = write(std::move(plan), file_);
    finished(std::move(result));
  });
}

}  // namespace tenure::server::raft
