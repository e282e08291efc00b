#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/lock_manager/wait_for_graph.hpp>

#include "support/lock_manager/locks.hpp"

namespace tenure::test {
namespace {

// 004.045, 004.052
TEST(WaitForGraphs, a_new_graph_is_empty) {
  const WaitForGraph graph;

  EXPECT_TRUE(graph.is_empty());
  EXPECT_EQ(graph.waiter_count(), 0U);
  EXPECT_EQ(graph.detect_cycle(), std::nullopt);
}

// 004.045, 004.047: the edge counts for the waiter, not for the holder.
TEST(WaitForGraphs, an_edge_makes_its_first_end_a_waiter) {
  WaitForGraph graph;

  graph.add_wait(t1, t2);

  EXPECT_EQ(graph.waiter_count(), 1U);
  graph.clear_waiter(t2);
  EXPECT_EQ(graph.waiter_count(), 1U);
  graph.clear_waiter(t1);
  EXPECT_TRUE(graph.is_empty());
}

// 004.046
TEST(WaitForGraphs, a_transaction_never_waits_for_itself) {
  WaitForGraph graph;

  graph.add_wait(t1, t1);
  graph.add_waits(t2, std::vector{t2});

  EXPECT_TRUE(graph.is_empty());
  EXPECT_EQ(graph.detect_cycle(), std::nullopt);
}

// 004.049
TEST(WaitForGraphs, a_cycle_is_given_in_the_order_of_its_edges) {
  WaitForGraph graph;
  graph.add_wait(t1, t2);
  graph.add_wait(t2, t3);
  graph.add_wait(t3, t1);

  const auto cycle = graph.detect_cycle();

  ASSERT_TRUE(cycle);
  EXPECT_TRUE(is_cycle(*cycle, {t1, t2, t3}));
}

// 004.049: side branches are no members of the cycle.
TEST(WaitForGraphs, a_cycle_excludes_transactions_that_only_lead_to_it) {
  WaitForGraph graph;
  graph.add_wait(t1, t2);
  graph.add_waits(t2, std::vector{t5, t3});
  graph.add_wait(t3, t4);
  graph.add_wait(t4, t2);

  const auto cycle = graph.detect_cycle();

  ASSERT_TRUE(cycle);
  EXPECT_TRUE(is_cycle(*cycle, {t2, t3, t4}));
}

// 004.050
TEST(WaitForGraphs, a_chain_is_no_cycle) {
  WaitForGraph graph;
  graph.add_wait(t1, t2);
  graph.add_wait(t2, t3);

  EXPECT_EQ(graph.detect_cycle(), std::nullopt);
}

// 004.050: a search that takes every node seen twice for a cycle fails here.
TEST(WaitForGraphs, a_diamond_is_no_cycle) {
  WaitForGraph graph;
  graph.add_waits(t1, std::vector{t2, t3});
  graph.add_wait(t2, t4);
  graph.add_wait(t3, t4);

  EXPECT_EQ(graph.detect_cycle(), std::nullopt);
  EXPECT_EQ(graph.cycle_from(t1), std::nullopt);
}

// 004.045
TEST(WaitForGraphs, clearing_a_waiter_breaks_its_cycle) {
  WaitForGraph graph;
  graph.add_wait(t1, t2);
  graph.add_wait(t2, t1);

  graph.clear_waiter(t1);

  EXPECT_EQ(graph.detect_cycle(), std::nullopt);
  EXPECT_EQ(graph.waiter_count(), 1U);
}

// 004.045
TEST(WaitForGraphs, removing_a_transaction_removes_it_as_waiter_and_as_holder) {
  WaitForGraph graph;
  graph.add_wait(t1, t2);
  graph.add_wait(t2, t1);
  graph.add_waits(t3, std::vector{t2, t1});

  graph.remove_txn(t2);

  EXPECT_EQ(graph.waiter_count(), 1U);
  graph.remove_txn(t1);
  EXPECT_TRUE(graph.is_empty());
}

// 004.051
TEST(WaitForGraphs, an_unknown_transaction_is_on_no_cycle) {
  WaitForGraph graph;
  graph.add_wait(t1, t2);
  graph.add_wait(t2, t1);

  EXPECT_EQ(graph.cycle_from(t5), std::nullopt);
}

// 004.045
TEST(WaitForGraphs, a_cycle_from_a_transaction_begins_with_it) {
  WaitForGraph graph;
  graph.add_wait(t1, t2);
  graph.add_wait(t2, t3);
  graph.add_wait(t3, t1);

  EXPECT_EQ(graph.cycle_from(t2), (std::vector{t2, t3, t1}));
}

// 004-B9: the document's graph reported transactions that only wait for members of a cycle.
TEST(WaitForGraphs, a_transaction_that_only_leads_to_a_cycle_is_on_none) {
  WaitForGraph graph;
  graph.add_wait(t1, t2);
  graph.add_wait(t2, t3);
  graph.add_wait(t3, t2);

  EXPECT_EQ(graph.cycle_from(t1), std::nullopt);
  EXPECT_TRUE(graph.detect_cycle());
}

// 004-B9: a foreign cycle on the way must not hide one's own.
TEST(WaitForGraphs, the_own_cycle_is_found_behind_a_foreign_one) {
  WaitForGraph graph;
  graph.add_waits(t1, std::vector{t2, t4});
  graph.add_wait(t2, t3);
  graph.add_wait(t3, t2);
  graph.add_wait(t4, t1);

  EXPECT_EQ(graph.cycle_from(t1), (std::vector{t1, t4}));
}

// 004.048: a recursive search overflows the stack here.
TEST(WaitForGraphs, a_chain_of_200000_is_searched) {
  constexpr std::uint64_t length = 200'000;
  WaitForGraph graph;
  for (std::uint64_t waiter = 1; waiter < length; ++waiter) {
    graph.add_wait(TxnId{waiter}, TxnId{waiter + 1});
  }

  EXPECT_EQ(graph.detect_cycle(), std::nullopt);
  graph.add_wait(TxnId{length}, TxnId{1});

  const auto cycle = graph.cycle_from(TxnId{1});
  ASSERT_TRUE(cycle);
  EXPECT_EQ(cycle->size(), length);
}

// 004.048: a search without memory walks 2^64 paths here.
TEST(WaitForGraphs, a_ladder_of_diamonds_is_searched_once) {
  WaitForGraph graph;
  for (std::uint64_t rung = 0; rung < 64; ++rung) {
    graph.add_waits(TxnId{rung * 3}, std::vector{TxnId{rung * 3 + 1}, TxnId{rung * 3 + 2}});
    graph.add_wait(TxnId{rung * 3 + 1}, TxnId{rung * 3 + 3});
    graph.add_wait(TxnId{rung * 3 + 2}, TxnId{rung * 3 + 3});
  }

  EXPECT_EQ(graph.detect_cycle(), std::nullopt);
  EXPECT_EQ(graph.cycle_from(TxnId{0}), std::nullopt);
}

// 004.053, 004.055
TEST(WaitForGraphs, the_youngest_has_the_largest_id_and_is_the_default) {
  const std::vector cycle{TxnId{3}, TxnId{7}, TxnId{5}};

  EXPECT_EQ(WaitForGraph::pick_victim(cycle), TxnId{7});
  EXPECT_EQ(WaitForGraph::pick_victim(cycle, VictimPolicy::youngest), TxnId{7});
}

// 004.033, 004.053
TEST(WaitForGraphs, the_oldest_has_the_smallest_id) {
  const std::vector cycle{TxnId{3}, TxnId{7}, TxnId{5}};

  EXPECT_EQ(WaitForGraph::pick_victim(cycle, VictimPolicy::oldest), TxnId{3});
}

// 004.053
TEST(WaitForGraphs, an_empty_cycle_has_no_victim) {
  EXPECT_EQ(WaitForGraph::pick_victim({}, VictimPolicy::youngest), std::nullopt);
  EXPECT_EQ(WaitForGraph::pick_victim({}, VictimPolicy::oldest), std::nullopt);
}

// 004.053: ids alone do not determine how many locks a member holds.
TEST(WaitForGraphs, policies_that_need_more_than_ids_choose_the_youngest) {
  const std::vector cycle{TxnId{3}, TxnId{7}, TxnId{5}};

  EXPECT_EQ(WaitForGraph::pick_victim(cycle, VictimPolicy::fewest_locks), TxnId{7});
  EXPECT_EQ(WaitForGraph::pick_victim(cycle, VictimPolicy::lowest_priority), TxnId{7});
}

}  // namespace
}  // namespace tenure::test
