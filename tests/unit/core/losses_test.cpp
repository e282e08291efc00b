#include <gtest/gtest.h>

#include "support/core/machine.hpp"

namespace tenure::core {
namespace {

using Losses = std::vector<Loss>;

class CoreLosses : public CoreTest {
 protected:
  void SetUp() override { grant_leases({ann, bob}); }

  FencingToken hold(LeaseId lease, RequestId request, std::vector<Item> items) {
    return token_of(
        apply(Acquire{.lease = lease, .request = request, .items = std::move(items)}).outcome);
  }
};

TEST_F(CoreLosses, a_forced_release_is_a_loss_of_the_holder) {
  const auto token = hold(ann, RequestId{7}, {lock("a")});

  apply(ForceRelease{.resource = resource("a")});

  EXPECT_EQ(
      applied.losses,
      (Losses{{.lease = ann, .request = RequestId{7}, .token = token, .why = EventType::forced}}));
}

TEST_F(CoreLosses, a_loss_counts_the_items_that_are_left) {
  const auto token = hold(ann, RequestId{7}, {keys("a", "b", "c"), keys("a", "d", "e"), lock("a")});

  apply(ForceRelease{.resource = {.name = "a", .kind = ResourceKind::space}});

  EXPECT_EQ(applied.losses, (Losses{{.lease = ann,
                                     .request = RequestId{7},
                                     .token = token,
                                     .why = EventType::forced,
                                     .items_left = 1}}));
}

// 002.073: one for each hold, whatever it is made of, in the order of tokens.
TEST_F(CoreLosses, the_end_of_a_lease_is_a_loss_of_each_of_its_holds) {
  const auto second = hold(bob, RequestId{1}, {lock("b")});
  const auto first = hold(ann, RequestId{1}, {lock("c"), lock("d")});
  const auto third = hold(ann, RequestId{2}, {lock("a")});

  apply(Tick{}, seconds(30));

  EXPECT_EQ(applied.losses,
            (Losses{
                {.lease = bob, .request = RequestId{1}, .token = second, .why = EventType::expired},
                {.lease = ann, .request = RequestId{1}, .token = first, .why = EventType::expired},
                {.lease = ann, .request = RequestId{2}, .token = third, .why = EventType::expired},
            }));
}

// 002.071
TEST_F(CoreLosses, a_revoked_lease_loses_its_holds) {
  const auto token = hold(ann, RequestId{3}, {lock("a")});

  apply(RevokeLease{ann});

  EXPECT_EQ(
      applied.losses,
      (Losses{{.lease = ann, .request = RequestId{3}, .token = token, .why = EventType::revoked}}));
}

TEST_F(CoreLosses, a_released_hold_is_no_loss) {
  release(ann, hold(ann, RequestId{3}, {lock("a")}));

  EXPECT_EQ(applied.losses, Losses{});
}

}  // namespace
}  // namespace tenure::core
