#include "support/raft/simulation.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace tenure::test {
namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoull(value);
}

// 002.094, 002.103
// A first check of the driver: TENURE_SEED=n TENURE_SEEDS=1 replays the run that a failure names.
TEST(RaftSimulation, three_replicas_agree_despite_network_disk_and_crash_faults) {
  const auto first = setting("TENURE_SEED", 1);
  const auto count = setting("TENURE_SEEDS", 200);
  SimulationResult sum;

  for (auto seed = first; seed < first + count; ++seed) {
    const auto result = simulate(seed, std::chrono::seconds(20));

    ASSERT_EQ(result.failure, "") << "TENURE_SEED=" << seed << " TENURE_SEEDS=1";
    sum.acknowledged += result.acknowledged;
    sum.crashes += result.crashes;
    sum.snapshots += result.snapshots;
    sum.installs += result.installs;
  }

  RecordProperty("acknowledged", std::to_string(sum.acknowledged));
  RecordProperty("crashes", std::to_string(sum.crashes));
  RecordProperty("snapshots", std::to_string(sum.snapshots));
  RecordProperty("installs", std::to_string(sum.installs));
  if (count >= 100) {
    EXPECT_GT(sum.acknowledged, 10 * count) << "too few commands for a meaningful result";
    EXPECT_GT(sum.crashes, count);
    EXPECT_GT(sum.snapshots, count);
    EXPECT_GT(sum.installs, 0U);
  }
}

}  // namespace
}  // namespace tenure::test
