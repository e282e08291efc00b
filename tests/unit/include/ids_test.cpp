#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <unordered_set>

#include <absl/hash/hash.h>
#include <gtest/gtest.h>

#include <tenure/ids.hpp>

namespace tenure::test {
namespace {

// 004.070
TEST(Ids, an_id_converts_to_its_number_and_back) {
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

// Swapped members would mix up the requests of two leases.
TEST(Ids, a_request_key_is_ordered_by_lease_and_then_by_request) {
  const RequestKey first{.lease = LeaseId{1}, .request = RequestId{9}};
  const RequestKey second{.lease = LeaseId{2}, .request = RequestId{3}};
  const RequestKey third{.lease = LeaseId{2}, .request = RequestId{4}};

  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(second, third);
  EXPECT_EQ(third, (RequestKey{.lease = LeaseId{2}, .request = RequestId{4}}));
}

// A hash of only one of the members would put all requests of a lease into one bucket.
TEST(Ids, request_keys_that_differ_in_one_member_have_different_hashes) {
  std::unordered_set<std::size_t> hashes;
  for (std::uint64_t lease = 1; lease <= 32; ++lease) {
    for (std::uint64_t request = 1; request <= 32; ++request) {
      hashes.insert(
          absl::Hash<RequestKey>{}({.lease = LeaseId{lease}, .request = RequestId{request}}));
    }
  }

  EXPECT_EQ(hashes.size(), 32U * 32U);
}

// Clients choose both numbers. With a hash of `lease ^ request * factor` these keys were all equal
// to it, and each look-up of the server compared all of them.
TEST(Ids, a_client_cannot_choose_request_keys_with_one_hash) {
  constexpr std::uint64_t factor = 0x9E37'79B9'7F4A'7C15;
  std::unordered_set<std::size_t> hashes;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    hashes.insert(
        absl::Hash<RequestKey>{}({.lease = LeaseId{7 ^ (i * factor)}, .request = RequestId{i}}));
  }

  EXPECT_EQ(hashes.size(), 1000U);
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
