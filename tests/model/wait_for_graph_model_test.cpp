#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <tenure/lock_manager/wait_for_graph.hpp>

#include "support/model/property.hpp"
#include "support/model/reference.hpp"

namespace tenure::model {
namespace {

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// Few nodes, so that about half of the graphs have a cycle.
rc::Gen<Pairs> edges_among(std::uint64_t nodes) {
  const auto node = rc::gen::inRange<std::uint64_t>(0, nodes);
  return rc::gen::container<Pairs>(rc::gen::pair(node, node));
}

WaitForGraph graph_of(const Pairs& pairs) {
  WaitForGraph graph;
  for (const auto& [waiter, holder] : pairs) {
    graph.add_wait(TxnId{waiter}, TxnId{holder});
  }
  return graph;
}

Edges reference_of(const Pairs& pairs) {
  Edges edges;
  for (const auto& [waiter, holder] : pairs) {
    if (waiter != holder) {
      edges[TxnId{waiter}].insert(TxnId{holder});
    }
  }
  return edges;
}

// 004.093, 004.049, 004.050. (Doubled parentheses: rapidcheck takes || apart otherwise.)
TEST(WaitForGraphModel, detect_cycle_finds_a_real_cycle_exactly_if_kahn_does) {
  check_property(2000, [] {
    const auto nodes = *rc::gen::inRange<std::uint64_t>(2, 60);
    const auto pairs = *edges_among(nodes);

    const auto cycle = graph_of(pairs).detect_cycle();

    RC_ASSERT(cycle.has_value() == has_cycle(reference_of(pairs)));
    RC_ASSERT((!cycle || is_cycle(reference_of(pairs), *cycle)));
  });
}

// 004.093, 004.051, 004-B9
TEST(WaitForGraphModel, cycle_from_finds_a_real_cycle_exactly_if_start_is_on_one) {
  check_property(2000, [] {
    const auto nodes = *rc::gen::inRange<std::uint64_t>(2, 60);
    const auto pairs = *edges_among(nodes);
    const TxnId start{*rc::gen::inRange<std::uint64_t>(0, nodes + 1)};

    const auto cycle = graph_of(pairs).cycle_from(start);

    RC_ASSERT(cycle.has_value() == is_on_cycle(reference_of(pairs), start));
    RC_ASSERT((!cycle || cycle->front() == start));
    RC_ASSERT((!cycle || is_cycle(reference_of(pairs), *cycle)));
  });
}

// 004.093: a transaction that was removed from the graph is in no cycle.
TEST(WaitForGraphModel, removing_transactions_equals_the_reference) {
  check_property(1000, [] {
    const auto pairs = *edges_among(8);
    const TxnId gone{*rc::gen::inRange<std::uint64_t>(0, 8)};
    const TxnId served{*rc::gen::inRange<std::uint64_t>(0, 8)};
    auto graph = graph_of(pairs);
    auto reference = reference_of(pairs);

    graph.remove_txn(gone);
    graph.clear_waiter(served);

    reference.erase(gone);
    reference.erase(served);
    std::ranges::for_each(reference, [&](auto& edge) { edge.second.erase(gone); });
    std::erase_if(reference, [](const auto& edge) { return edge.second.empty(); });
    RC_ASSERT(graph.waiter_count() == reference.size());
    RC_ASSERT(graph.is_empty() == reference.empty());
    RC_ASSERT(graph.detect_cycle().has_value() == has_cycle(reference));
  });
}

// 004.053
TEST(WaitForGraphModel, the_victim_is_the_largest_or_the_smallest_member) {
  check_property(500, [] {
    const auto numbers = *rc::gen::arbitrary<std::vector<std::uint64_t>>();
    std::vector<TxnId> cycle;
    std::ranges::for_each(numbers, [&](std::uint64_t number) { cycle.emplace_back(number); });

    const auto youngest = WaitForGraph::pick_victim(cycle);
    const auto oldest = WaitForGraph::pick_victim(cycle, VictimPolicy::oldest);

    RC_ASSERT(youngest.has_value() == !cycle.empty());
    RC_ASSERT((cycle.empty() || *youngest == *std::ranges::max_element(cycle)));
    RC_ASSERT((cycle.empty() || *oldest == *std::ranges::min_element(cycle)));
  });
}

}  // namespace
}  // namespace tenure::model
