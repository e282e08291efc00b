#include "server/raft/compaction.hpp"

#include <cstddef>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "core/batch.hpp"

// Interface of jemalloc, if it is linked. 4096 means all arenas (MALLCTL_ARENAS_ALL).
extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_size, void* new_value,
                       std::size_t new_size) __attribute__((weak));

namespace tenure::server::raft {
namespace {

// Returns free memory to the system: the buffers of a snapshot are as large as its file and are not
// needed again for a long time.
void give_back_memory() {
  if (mallctl != nullptr) {
    mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);
  }
}

// Lowers the priority of this thread below that of the threads that serve clients. A refusal (a
// system call filter may not allow it) is harmless: the snapshot then competes with them.
void lower_priority() {
  static_cast<void>(setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10));
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
  machine.apply(*batch, [](std::size_t, const core::Applied&) {});
  return {};
}

Result<std::size_t> compact(CompactionPlan plan, SnapshotFile& file) {
  // Destroyed as early as possible: while the image exists, every change of the state copies first.
  const auto body = core::encode(std::exchange(plan.image, {}));
  if (auto written = file.write(plan.mark, body); !written) {
    return std::unexpected(std::move(written).error());
  }
  return body.size();
}

void Compactor::begin(CompactionPlan plan, Finished finished) {
  // The assignment joins the former thread, which has finished.
  thread_ = std::jthread([this, plan = std::move(plan), finished = std::move(finished)]() mutable {
    lower_priority();
    auto result = compact(std::move(plan), file_);
    give_back_memory();
    finished(std::move(result));
  });
}

}  // namespace tenure::server::raft
