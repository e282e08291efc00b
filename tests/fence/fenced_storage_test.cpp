// Contract of all fences, on real databases.

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
TEST_P(FencedStorage, starts_without_a_token) {
  EXPECT_EQ(storage_->highest("x"), FencingToken{0});
}

// 002.056
TEST_P(FencedStorage, writes_with_a_newer_token_and_records_it) {
  EXPECT_TRUE(storage_->add({.resource = "x", .token = ann, .text = "a"}));
  EXPECT_TRUE(storage_->add({.resource = "x", .token = bob, .text = "b"}));

  EXPECT_EQ(storage_->texts("x"), (Texts{"a", "b"}));
  EXPECT_EQ(storage_->highest("x"), bob);
}

// 002.054
TEST_P(FencedStorage, rejects_an_older_token_reports_the_highest_and_writes_nothing) {
  ASSERT_TRUE(storage_->add({.resource = "x", .token = bob, .text = "b"}));

  const auto admitted = storage_->add({.resource = "x", .token = ann, .text = "a"});

  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error().reason, Reason::stale);
  EXPECT_EQ(admitted.error().token, ann);
  EXPECT_EQ(admitted.error().highest, bob);
  EXPECT_EQ(to_string(admitted.error()),
            R"(lease_lost: token 100 is stale: 101 was admitted for "x")");
  EXPECT_EQ(storage_->texts("x"), Texts{"b"});
  EXPECT_EQ(storage_->highest("x"), bob);
}

// 002.055 as corrected by 002-B11
TEST_P(FencedStorage, admits_several_writes_of_one_holder) {
  EXPECT_TRUE(storage_->add({.resource = "x", .token = ann, .text = "a"}));
  EXPECT_TRUE(storage_->add({.resource = "x", .token = ann, .text = "b"}));

  EXPECT_EQ(storage_->texts("x"), (Texts{"a", "b"}));
}

// 002.055
TEST_P(FencedStorage, admit_once_rejects_a_repeated_token) {
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

// 002.053: also for names with a common prefix, with different case, or with arbitrary bytes.
TEST_P(FencedStorage, resources_are_independent) {
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

// Tokens that are compared as text or as floating point would fail.
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

TEST_P(FencedStorage, accepts_names_up_to_1024_bytes_and_tokens_from_1) {
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

// 002-B12: a token that is kept in memory only would be lost.
TEST_P(FencedStorage, keeps_its_tokens_after_a_crash) {
  ASSERT_TRUE(storage_->add({.resource = "x", .token = bob, .text = "b"}));
  storage_.reset();

  database(GetParam()).crash();
  storage_ = connect();

  EXPECT_EQ(storage_->highest("x"), bob);
  EXPECT_EQ(reason_of(storage_->add({.resource = "x", .token = ann, .text = "a"})), Reason::stale);
  EXPECT_EQ(storage_->texts("x"), Texts{"b"});
}

/// Four connections write concurrently, each with increasing tokens that are sometimes smaller than
/// those of the others. Returns the written tokens in order.
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

// 002.056, 002-B12: a gap between the check and the write would let an older write follow a newer
// one.
TEST_P(FencedStorage, no_older_write_follows_a_newer_one_under_concurrency) {
  const auto tokens = race(GetParam(), Repeat::allowed);

  ASSERT_FALSE(tokens.empty());
  EXPECT_TRUE(std::ranges::is_sorted(tokens));
  EXPECT_EQ(storage_->highest("x"), FencingToken{tokens.back()});
}

// 002.055
TEST_P(FencedStorage, admit_once_writes_each_token_once_under_concurrency) {
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
