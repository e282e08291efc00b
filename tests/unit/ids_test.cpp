#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

#include <tenure/ids.hpp>

namespace tenure::test {
namespace {

// 004.070
TEST(Ids, an_id_gives_back_its_number_both_ways) {
  const TxnId txn{42};
  const ResourceId page{0xDEAD'BEEF};

  EXPECT_EQ(txn.get(), 42U);
  EXPECT_EQ(static_cast<std::uint64_t>(page), 0xDEAD'BEEFU);
  EXPECT_EQ(TxnId(static_cast<std::uint64_t>(txn)), txn);
}

// 004.070
TEST(Ids, every_64_bit_number_is_an_id) {
  EXPECT_EQ(TxnId{}.get(), 0U);
  EXPECT_EQ(ResourceId{std::numeric_limits<std::uint64_t>::max()}.get(),
            std::numeric_limits<std::uint64_t>::max());
}

// 004.055, 004.070
TEST(Ids, ids_are_ordered_as_their_numbers) {
  EXPECT_LT(TxnId{1}, TxnId{2});
  EXPECT_GT(ResourceId{2}, ResourceId{1});
  EXPECT_NE(TxnId{1}, TxnId{2});
}

// 004.070
TEST(Ids, ids_are_keys_of_hash_tables) {
  const std::unordered_set<ResourceId> seen{ResourceId{1}, ResourceId{2}, ResourceId{1}};

  EXPECT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen.contains(ResourceId{2}));
}

// 004.070: an id costs what its number costs.
TEST(Ids, ids_are_copied_like_numbers) {
  static_assert(std::is_trivially_copyable_v<TxnId> && sizeof(TxnId) == sizeof(std::uint64_t));
  static_assert(std::is_trivially_copyable_v<ResourceId>);
  SUCCEED();
}

// 004.070: swapped arguments do not compile; tests/compile_fail shows the messages.
TEST(Ids, a_number_and_the_two_kinds_of_ids_never_mix) {
  static_assert(!std::same_as<TxnId, ResourceId>);
  static_assert(!std::convertible_to<TxnId, ResourceId>);
  static_assert(!std::convertible_to<std::uint64_t, TxnId>);
  static_assert(!std::convertible_to<TxnId, std::uint64_t>);
  static_assert(!std::equality_comparable_with<TxnId, ResourceId>);
  SUCCEED();
}

}  // namespace
}  // namespace tenure::test
