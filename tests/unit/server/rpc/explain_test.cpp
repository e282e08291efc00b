#include "server/rpc/explain.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/state_machine.hpp"
#include "support/core/machine.hpp"

namespace tenure::server {
namespace {

/// A space with many holders, each of many ranges, and a wait that conflicts with the last of them.
class RpcExplain : public core::CoreTest {
 protected:
  static std::string key(std::size_t i) { return std::to_string(1'000'000 + i); }

  [[nodiscard]] v1::ExplainResponse explain_after(std::uint64_t holders) {
    constexpr std::size_t ranges = 64;
    for (std::uint64_t i = 0; i <= holders; ++i) {
      machine.apply(core::GrantLease{.id = core::LeaseId{1 + i}, .ttl = std::chrono::seconds(30)},
                    {});
    }
    for (std::uint64_t i = 0; i < holders; ++i) {
      std::vector<core::Item> items;
      for (std::size_t n = 0; n < ranges; ++n) {
        const auto at = (i * ranges) + n;
        items.push_back(keys("space", key(at), key(at + 1)));
      }
      want(core::LeaseId{1 + i}, std::move(items));
    }
    std::vector<core::Item> items;
    const auto last = (holders * ranges) - 1;
    for (std::size_t n = 0; n < ranges; ++n) {
      items.push_back(keys("space", key(last + n), key(last + n + 1)));
    }
    want(core::LeaseId{1 + holders}, std::move(items));
    EXPECT_EQ(machine.state().locks.waits().size(), 1U);

    v1::ExplainResponse out;
    const LogPosition log;
    explain({.name = "space", .kind = core::ResourceKind::space},
            {.state = machine.state(), .log = log, .now = {}}, auth::Access::unrestricted(), out);
    return out;
  }

 private:
  void want(core::LeaseId lease, std::vector<core::Item> items) {
    machine.apply(core::Acquire{.lease = lease, .request = fresh(), .items = std::move(items)}, {});
  }
};

TEST_F(RpcExplain, a_wait_has_its_blockers) {
  const auto explained = explain_after(10);

  ASSERT_EQ(explained.queue_size(), 1);
  ASSERT_EQ(explained.queue(0).blockers_size(), 1);
  EXPECT_EQ(explained.queue(0).blockers(0).lease_id(), 10U);
}

// Each pair of requests takes 4096 comparisons. Regression: without a limit, 100 waits behind
// 100,000 holds blocked the thread of Raft for minutes.
TEST_F(RpcExplain, an_answer_compares_a_limited_number_of_items) {
  const auto explained = explain_after(100);

  ASSERT_EQ(explained.queue_size(), 1);
  EXPECT_EQ(explained.queue(0).blockers_size(), 0);
  EXPECT_LE(explained.lock().holders_size(), 100 + 64);
  EXPECT_EQ(explained.lock().holder_count(), 100U);
}

}  // namespace
}  // namespace tenure::server
