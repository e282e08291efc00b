// What every form of the fence promises, on the real databases.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fence/databases.hpp"
#include "support/refusals.hpp"

namespace tenure::test {
namespace {

using Reason = FenceError::Reason;
using Texts = std::vector<std::string>;

constexpr FencingToken ann{100};
constexpr FencingToken bob{101};

class FencedStorage : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    database(GetParam()).wipe();
    storage_ = connect();
    storage_->create();
  }
  static std::unique_ptr<Storage> connect() {
    return connect_storage(GetParam(), database(GetParam()).address());
  }

  std::unique_ptr<Storage> storage_;
};

// 002.053
TEST_P(FencedStorage, has_seen_no_token_at_first) {
  EXPECT_EQ(storage_->highest("x"), FencingToken{0});
}

// 002.056
TEST_P(FencedStorage, writes_with_a_newer_token_and_remembers_it) {
  EXPECT_TRUE(storage_->add({.resource = "x", .token = ann, .text = "a"}));
  EXPECT_TRUE(storage_->add({.resource = "x", .token = bob, .text = "b"}));

  EXPECT_EQ(storage_->texts("x"), (Texts{"a", "b"}));
  EXPECT_EQ(storage_->highest("x"), bob);
}

// 002.054
TEST_P(FencedStorage, refuses_an_older_token_tells_the_highest_and_writes_nothing) {
  ASSERT_TRUE(storage_->add({.resource = "x", .token = bob, .text = "b"}));

  const auto admitted = storage_->add({.resource = "x", .token = ann, .text = "a"});

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::stale);
  EXPECT_EQ(admitted.error().token, ann);
  EXPECT_EQ(admitted.error().highest, bob);
  EXPECT_EQ(to_string(admitted.error()), R"(lease_lost: token 100 is stale: 101 was admitted for "x")");
  EXPECT_EQ(storage_->texts("x"), Texts{"b"});
  EXPECT_EQ(storage_->highest("x"), bob);
}

// 002.055 as corrected by 002-B11
TEST_P(FencedStorage, lets_a_holder_write_more_than_once) {
  EXPECT_TRUE(storage_->add({.resource = "x", .token = ann, .text = "a"}));
  EXPECT_TRUE(storage_->add({.resource = "x", .token = ann, .text = "b"}));

  EXPECT_EQ(storage_->texts("x"), (Texts{"a", "b"}));
}

// 002.055
TEST_P(FencedStorage, refuses_the_same_token_again_where_once_is_asked_for) {
  const Entry entry{.resource = "x", .token = ann, .text = "a", .repeat = Repeat::refused};
  ASSERT_TRUE(storage_->add(entry));

  const auto admitted = storage_->add(entry);

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::reused);
  EXPECT_EQ(admitted.error().highest, ann);
  EXPECT_EQ(storage_->texts("x"), Texts{"a"});
  EXPECT_EQ(reason_of(storage_->add(
                {.resource = "x", .token = FencingToken{99}, .repeat = Repeat::refused})),
            Reason::stale);
}

// 002.053: also where names begin alike, differ in case, or have bytes that are no text.
TEST_P(FencedStorage, resources_do_not_know_each_other) {
  const std::vector<std::string> names{"x",        "X",     "x ",  std::string("x\0", 2),
                                       "\xFF\xFE", "'; --", "{x}", "}"};
  std::uint64_t token = names.size();
  for (const auto& name : names) {
    EXPECT_TRUE(storage_->add({.resource = name, .token = FencingToken{token}, .text = "a"}));
    --token;  // would be refused if it met the one before
  }

  token = names.size();
  for (const auto& name : names) {
    EXPECT_EQ(storage_->highest(name), FencingToken{token});
    EXPECT_EQ(storage_->texts(name), Texts{"a"});
    --token;
  }
}

// Bytes that are compared as text, or numbers that become floating point, would fail here.
TEST_P(FencedStorage, compares_tokens_as_whole_numbers_of_63_bits) {
  const std::vector<std::uint64_t> rising{9,
                                          10,
                                          99,
                                          100,
                                          9'007'199'254'740'992,  // 2^53
                                          9'007'199'254'740'993,
                                          fencing_token_max.get() - 1,
                                          fencing_token_max.get()};
  std::uint64_t before = 1;
  for (const auto token : rising) {
    EXPECT_TRUE(storage_->add({.resource = "x", .token = FencingToken{token}})) << token;
    const auto admitted = storage_->add({.resource = "x", .token = FencingToken{before}});
    ASSERT_FALSE(admitted) << before;
    EXPECT_EQ(admitted.error().highest, FencingToken{token});
    before = token;
  }
}

TEST_P(FencedStorage, takes_names_up_to_1024_bytes_and_tokens_from_1) {
  const std::string longest(1024, 'x');
  EXPECT_TRUE(storage_->add({.resource = longest, .token = ann}));

  for (const auto& entry :
       {Entry{.resource = "", .token = ann}, Entry{.resource = longest + 'x', .token = ann},
        Entry{.resource = "x", .token = FencingToken{0}},
        Entry{.resource = "x", .token = FencingToken{fencing_token_max.get() + 1}}}) {
    const auto admitted = storage_->add(entry);
    ASSERT_FALSE(admitted);
    EXPECT_EQ(admitted.error().reason, Reason::not_checked);
    EXPECT_EQ(admitted.error().error, Errc::invalid_argument);
  }
  EXPECT_EQ(code_of(storage_->highest("")), Errc::invalid_argument);
  EXPECT_EQ(code_of(storage_->highest(longest + 'x')), Errc::invalid_argument);
}

// 002-B12: a highest token that were kept in memory would be gone.
TEST_P(FencedStorage, remembers_after_a_crash) {
  ASSERT_TRUE(storage_->add({.resource = "x", .token = bob, .text = "b"}));
  storage_.reset();

  database(GetParam()).crash();
  storage_ = connect();

  EXPECT_EQ(storage_->highest("x"), bob);
  EXPECT_EQ(reason_of(storage_->add({.resource = "x", .token = ann, .text = "a"})), Reason::stale);
  EXPECT_EQ(storage_->texts("x"), Texts{"b"});
}

/// Four connections write at once, each with tokens that rise but are now and then behind those of
/// the others. The tokens that were written, in the order in which they were.
std::vector<std::uint64_t> race(const std::string& kind, Repeat repeat) {
  const auto address = database(kind).address();
  std::vector<std::jthread> writers;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    writers.emplace_back([&kind, &address, repeat, seed] {
      const auto storage = connect_storage(kind, address);
      std::mt19937_64 chance(seed);
      for (std::uint64_t round = 1; round <= 100; ++round) {
        const FencingToken token{round + chance() % 10};
        const auto admitted = storage->add({.resource = "x",
                                            .token = token,
                                            .text = std::to_string(token.get()),
                                            .repeat = repeat});
        EXPECT_TRUE(admitted || admitted.error().reason != Reason::not_checked)
            << to_string(admitted.error());
      }
    });
  }
  writers.clear();
  std::vector<std::uint64_t> tokens;
  for (const auto& text : connect_storage(kind, address)->texts("x")) {
    tokens.push_back(std::stoull(text));
  }
  return tokens;
}

// 002.056, 002-B12: with a gap between the check and the write, an older write would follow a
// newer.
TEST_P(FencedStorage, of_writers_at_once_no_older_one_follows_a_newer_one) {
  const auto tokens = race(GetParam(), Repeat::allowed);

  ASSERT_FALSE(tokens.empty());
  EXPECT_TRUE(std::ranges::is_sorted(tokens));
  EXPECT_EQ(storage_->highest("x"), FencingToken{tokens.back()});
}

// 002.055
TEST_P(FencedStorage, of_writers_at_once_each_token_writes_once_where_once_is_asked_for) {
  const auto tokens = race(GetParam(), Repeat::refused);

  ASSERT_FALSE(tokens.empty());
  EXPECT_EQ(std::ranges::adjacent_find(tokens, std::ranges::greater_equal()), tokens.end());
  EXPECT_EQ(storage_->highest("x"), FencingToken{tokens.back()});
}

INSTANTIATE_TEST_SUITE_P(Sqlite, FencedStorage, ::testing::Values("sqlite"));
INSTANTIATE_TEST_SUITE_P(Postgres, FencedStorage, ::testing::Values("postgresql"));
INSTANTIATE_TEST_SUITE_P(Redis, FencedStorage, ::testing::Values("redis"));

}  // namespace
}  // namespace tenure::test
