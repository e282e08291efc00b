#include "backends/zookeeper/queue_view.hpp"

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tenure::backends::zookeeper {
namespace {

QueueView::Contender contender(std::string_view node, std::uint64_t ours = 0) {
  return {.node = std::string(node), .ticket = *ticket_of(node), .ours = ClaimId{ours}};
}

std::string_view blocker(const QueueView& view, std::string_view node) {
  const auto* const found = view.blocker_of(*view.find(node));
  return found == nullptr ? "" : std::string_view(found->node);
}

// 002.038, 002.039
TEST(ZookeeperQueueView, the_lowest_number_is_granted_and_each_waits_for_its_predecessor) {
  QueueView view;
  view.replace({"b-lock-0000000002", "c-lock-0000000001", "a-lock-0000000010"});

  EXPECT_EQ(blocker(view, "c-lock-0000000001"), "");
  EXPECT_EQ(blocker(view, "b-lock-0000000002"), "c-lock-0000000001");
  EXPECT_EQ(blocker(view, "a-lock-0000000010"), "b-lock-0000000002");
}

// 002-B8
TEST(ZookeeperQueueView, the_order_continues_when_the_counter_wraps) {
  QueueView view;
  view.add(contender("b-lock--2147483648", 1));
  view.replace({"b-lock--2147483648", "a-lock-2147483647"});

  EXPECT_EQ(blocker(view, "a-lock-2147483647"), "");
  EXPECT_EQ(blocker(view, "b-lock--2147483648"), "a-lock-2147483647");
  EXPECT_TRUE(view.covers({-2147483647 - 1}));
  EXPECT_FALSE(view.covers({-2147483647}));
}

TEST(ZookeeperQueueView, readers_wait_for_writers_only) {
  QueueView view;
  view.replace({"a-__READ__0000000000", "b-__READ__0000000001", "c-__WRIT__0000000002",
                "d-__READ__0000000003", "e-__READ__0000000004", "f-lock-0000000005"});

  EXPECT_EQ(blocker(view, "a-__READ__0000000000"), "");
  EXPECT_EQ(blocker(view, "b-__READ__0000000001"), "");
  EXPECT_EQ(blocker(view, "c-__WRIT__0000000002"), "b-__READ__0000000001");
  EXPECT_EQ(blocker(view, "e-__READ__0000000004"), "c-__WRIT__0000000002");
  EXPECT_EQ(blocker(view, "f-lock-0000000005"), "e-__READ__0000000004");
  EXPECT_EQ(view.position_of(*view.find("c-__WRIT__0000000002")), 1U);
  EXPECT_EQ(view.position_of(*view.find("e-__READ__0000000004")), 3U);
}

// Without a list the view must not skip a number: the missing node may be a predecessor.
TEST(ZookeeperQueueView, only_the_next_sequence_number_extends_the_view_without_a_list) {
  QueueView view;
  EXPECT_FALSE(view.is_usable());
  view.add(contender("a-lock-0000000007", 3));
  EXPECT_FALSE(view.covers({7}));
  view.replace({"a-lock-0000000007"});

  view.add(contender("b-lock-0000000008", 1));
  EXPECT_TRUE(view.covers({8}));
  view.add(contender("c-lock-0000000010", 2));
  EXPECT_FALSE(view.covers({10}));
  view.replace(
      {"a-lock-0000000007", "b-lock-0000000008", "x-lock-0000000009", "c-lock-0000000010"});

  EXPECT_TRUE(view.covers({10}));
  EXPECT_EQ(blocker(view, "c-lock-0000000010"), "x-lock-0000000009");
  EXPECT_EQ(view.find("c-lock-0000000010")->ours, ClaimId{2});
}

// A list that was asked for before our node was made does not have it.
TEST(ZookeeperQueueView, an_older_list_keeps_our_own_nodes) {
  QueueView view;
  view.add(contender("b-lock-0000000002", 1));
  view.replace({"a-lock-0000000001"});

  EXPECT_NE(view.find("b-lock-0000000002"), nullptr);
  EXPECT_FALSE(view.covers({2}));
}

// A number written by hand is not a counter value and must not extend the view.
TEST(ZookeeperQueueView, a_sequence_number_written_by_hand_does_not_extend_the_view) {
  QueueView view;
  view.add(contender("a-lock-0000000005", 1));
  view.replace({"a-lock-0000000005", "z-lock-0000009999"});

  EXPECT_TRUE(view.covers({5}));
  EXPECT_FALSE(view.covers({7}));
}

TEST(ZookeeperQueueView, cyclic_sequence_numbers_are_ordered) {
  QueueView view;
  view.replace({"a-lock-0000000000", "b-lock-2000000000", "c-lock--2000000000"});
  view.add(contender("d-lock-0000000001", 1));
  view.replace(
      {"a-lock-0000000000", "b-lock-2000000000", "c-lock--2000000000", "d-lock-0000000001"});

  EXPECT_EQ(blocker(view, "d-lock-0000000001"), "a-lock-0000000000");
  for (const auto* node : {"a-lock-0000000000", "b-lock-2000000000", "c-lock--2000000000"}) {
    EXPECT_TRUE(view.remove(node));
  }
  EXPECT_EQ(blocker(view, "d-lock-0000000001"), "");
}

// By walking through the whole queue, one by one.
struct Walked {
  std::string_view blocker;
  std::size_t position = 1;
};

Walked walk(const std::vector<std::string>& queue, std::size_t self) {
  const auto wants_all = [&](std::size_t i) { return is_exclusive(ticket_of(queue[i])->kind); };
  Walked result;
  bool is_front = true;
  for (std::size_t i = 0; i < self; ++i) {
    if (wants_all(i) || wants_all(self)) {
      result.blocker = queue[i];
    }
    const bool holds = is_front && (i == 0 || !wants_all(i));
    result.position += holds ? 0 : 1;
    is_front = holds && !wants_all(i);
  }
  return result;
}

TEST(ZookeeperQueueView, blockers_and_positions_match_a_linear_search) {
  std::mt19937 chance(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> queue;
    const auto length = chance() % 12;
    for (std::size_t i = 0; i < length; ++i) {
      const auto digits = std::to_string(i * 3);
      queue.push_back((chance() % 3 == 0 ? "a-__WRIT__" : "a-__READ__") +
                      std::string(10 - digits.size(), '0') + digits);
    }
    QueueView view;
    view.replace({queue.begin(), queue.end()});
    if (!queue.empty() && round % 2 == 0) {
      view.remove(queue.back());
      queue.pop_back();
    }
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const auto expected = walk(queue, i);
      EXPECT_EQ(blocker(view, queue[i]), expected.blocker);
      EXPECT_EQ(view.position_of(*view.find(queue[i])), expected.position);
    }
  }
}

// 002.044: a deleted node affects only its waiters.
TEST(ZookeeperQueueView, woken_waiters_end_at_the_first_exclusive_one) {
  QueueView view;
  view.replace({"a-__WRIT__0000000000"});
  view.add(contender("b-__READ__0000000001", 1));
  view.add(contender("c-__READ__0000000002", 2));
  view.add(contender("d-__WRIT__0000000003", 3));
  view.add(contender("e-__READ__0000000004", 4));

  EXPECT_EQ(view.waiters_of(*ticket_of("a-__WRIT__0000000000")),
            (std::vector{ClaimId{1}, ClaimId{2}, ClaimId{3}}));
  EXPECT_EQ(view.waiters_of(*ticket_of("b-__READ__0000000001")), std::vector{ClaimId{3}})
      << "readers wait for no reader";
  EXPECT_TRUE(view.remove("a-__WRIT__0000000000"));
  EXPECT_FALSE(view.remove("a-__WRIT__0000000000"));
  EXPECT_EQ(blocker(view, "c-__READ__0000000002"), "");
  EXPECT_EQ(blocker(view, "d-__WRIT__0000000003"), "c-__READ__0000000002");
}

TEST(ZookeeperQueueView, forget_keeps_our_own_nodes) {
  QueueView view;
  view.replace({"a-lock-0000000001"});
  view.add(contender("b-lock-0000000002", 1));

  view.forget();

  EXPECT_FALSE(view.is_usable());
  EXPECT_EQ(view.find("a-lock-0000000001"), nullptr);
  EXPECT_EQ(view.ours(), std::vector{ClaimId{1}});
  EXPECT_EQ(view.conflicting_with(Kind::read)->ours, ClaimId{1});
}

TEST(ZookeeperQueueView, foreign_nodes_and_permits_are_ignored) {
  QueueView view;
  view.replace({"users", "lease-0000000001"});

  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.conflicting_with(Kind::lock), nullptr);
}

}  // namespace
}  // namespace tenure::backends::zookeeper
