#include "server/http/records.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/state_machine.hpp"
#include "support/core/machine.hpp"

namespace tenure::server::http {
namespace {

/// A state that exceeds the size limit of a response.
class HttpRecords : public core::CoreTest {
 protected:
  static core::LeaseId lease(std::uint64_t i) { return core::LeaseId{i + 1}; }

  void grant(std::uint64_t leases) {
    for (std::uint64_t i = 0; i < leases; ++i) {
      machine.apply(core::GrantLease{.id = lease(i), .ttl = std::chrono::seconds(30)}, {});
    }
  }
  void want(core::LeaseId lease, std::vector<core::Item> items, std::string metadata = {}) {
    machine.apply(core::Acquire{.lease = lease,
                                .request = fresh(),
                                .items = std::move(items),
                                .metadata = std::move(metadata)},
                  {});
  }
  [[nodiscard]] View view() const { return {.state = machine.state(), .log = log_, .now = {}}; }

 private:
  LogPosition log_;
};

// 500 locks with ten holders each and 4 KiB of metadata are 20 MiB.
TEST_F(HttpRecords, a_page_of_locks_ends_when_it_is_large) {
  constexpr std::uint64_t holders = 10;
  constexpr std::size_t locks = 500;
  grant(holders);
  const std::string metadata(4000, 'm');
  for (std::size_t n = 0; n < locks; ++n) {
    for (std::uint64_t i = 0; i < holders; ++i) {
      want(lease(i), {lock("lock " + std::to_string(n), LockMode::shared)}, metadata);
    }
  }
  std::set<std::string> names;
  std::optional<core::Resource> after;
  std::size_t pages = 0;

  do {
    const auto page = copy_locks(view(), {.after = after, .limit = 1000});
    EXPECT_LE(page.records.size(), 120U);
    for (const auto& record : page.records) {
      names.insert(std::string(record.resource.name.view()));
    }
    after = page.next;
    ++pages;
  } while (after && pages < 100);

  EXPECT_EQ(names.size(), locks);
  EXPECT_LT(pages, 10U);
}

TEST_F(HttpRecords, a_small_page_of_locks_ends_at_its_limit) {
  grant(1);
  for (std::size_t n = 0; n < 30; ++n) {
    want(lease(0), {lock("lock " + std::to_string(n))});
  }

  const auto page = copy_locks(view(), {.limit = 20});

  EXPECT_EQ(page.records.size(), 20U);
  EXPECT_TRUE(page.next);
}

TEST_F(HttpRecords, a_graph_is_incomplete_when_it_is_large) {
  constexpr std::uint64_t leases = 51;
  constexpr std::size_t locks = 40;
  grant(leases);
  const std::string metadata(4000, 'm');
  for (std::uint64_t i = 0; i < leases; ++i) {
    for (std::size_t n = 0; n < locks; ++n) {
      want(lease(i), {lock("lock " + std::to_string(n))}, metadata);
    }
  }

  const auto graph = copy_graph(view(), auth::Access::unrestricted());

  EXPECT_FALSE(graph.is_complete);
  EXPECT_GT(graph.locks.size(), 10U);
  EXPECT_LT(graph.locks.size(), 30U) << "200 KB each";
}

// Each wait requests 64 locks.
TEST_F(HttpRecords, a_graph_looks_at_a_limited_number_of_items) {
  grant(41);
  std::vector<core::Item> items;
  for (std::size_t n = 0; n < 64; ++n) {
    items.push_back(lock("lock " + std::to_string(n), LockMode::exclusive));
  }
  for (std::uint64_t i = 0; i < 41; ++i) {
    want(lease(i), items);
  }

  const auto graph = copy_graph(view(), auth::Access::unrestricted());

  EXPECT_EQ(graph.waits, 40U);
  EXPECT_EQ(graph.locks.size(), 64U);
  EXPECT_FALSE(graph.is_complete);
}

TEST_F(HttpRecords, a_lease_with_many_locks_is_cut) {
  grant(1);
  for (std::size_t n = 0; n < 1500; ++n) {
    want(lease(0), {lock("lock " + std::to_string(n))});
  }

  const auto record = copy_lease(view(), lease(0), auth::Access::unrestricted());

  ASSERT_TRUE(record);
  EXPECT_EQ(record->hold_count, 1500U);
  EXPECT_EQ(record->locks.size(), 1000U);
}

}  // namespace
}  // namespace tenure::server::http
