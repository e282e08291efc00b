#include <string>

#include <gtest/gtest.h>
#include <malloc.h>

#include "core/shared_string.hpp"
#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

std::size_t allocated() {
  const auto now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

class CoreMemory : public CoreTest {
 protected:
  /// Of a store with that many locks, taken in this way. Sanitizers count nothing: 0.
  std::size_t bytes_per_lock(std::size_t locks, std::size_t items_per_request) {
    State filled;
    filled.leases.add({.id = ann, .ttl = seconds(30), .deadline = seconds(30)});
    const auto before = allocated();
    for (std::size_t i = 0; i < locks; i += items_per_request) {
      Hold hold{.token = FencingToken{i + 1}, .lease = ann, .request = RequestId{i + 1}};
      for (std::size_t k = i; k < i + items_per_request; ++k) {
        hold.items.push_back(lock("filled/" + std::to_string(k)));
      }
      hold.items.shrink_to_fit();
      filled.leases.edit(ann)->history.record(
          hold.request, {.answer = Granted{.token = hold.token}, .since = Revision{i + 1}});
      filled.locks.add(std::move(hold), Revision{i + 1});
    }
    return (allocated() - before) / locks;
  }
};

// A server has other things to keep, and a million locks: a container in every lock that allocates
// when it is empty, as std::deque does, made them 1,100 bytes each.
TEST_F(CoreMemory, a_held_lock_takes_less_than_150_bytes_beside_63_others_of_its_request) {
  EXPECT_LT(bytes_per_lock(64 * 500, 64), 150U);
}

TEST_F(CoreMemory, a_held_lock_of_its_own_request_takes_less_than_270_bytes) {
  EXPECT_LT(bytes_per_lock(30'000, 1), 270U);
}

TEST(SharedString, a_shared_string_keeps_any_bytes_and_compares_like_a_string) {
  const std::string bytes("a\0b", 3);
  const SharedString text(bytes);
  const SharedString copy = text;

  EXPECT_EQ(std::string(copy), bytes);
  EXPECT_EQ(copy, text);
  EXPECT_NE(copy, SharedString());
  EXPECT_EQ(SharedString(), std::string_view());
}

TEST(SharedString, self_assignment_keeps_the_string) {
  SharedString text(std::string_view("owner"));
  const auto& same = text;

  text = same;

  EXPECT_EQ(text, std::string_view("owner"));
}

}  // namespace
}  // namespace tenure::core
