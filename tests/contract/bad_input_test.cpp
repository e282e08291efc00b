#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>
#include <tenure/client/election.hpp>
#include <tenure/client/watch.hpp>

#include "support/contract/contract.hpp"
#include "support/process_counts.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TENURE_CONTRACT(BadInputContract);

static_assert(std::is_nothrow_destructible_v<Client> && std::is_nothrow_destructible_v<Guard> &&
              std::is_nothrow_destructible_v<Lease> && std::is_nothrow_destructible_v<Watch>);

// 000.016, 000.039, 003.010: every backend applies the same rule before it sends a request.
TEST_P(BadInputContract, an_invalid_name_is_rejected_with_the_allowed_range) {
  const auto empty = ann.mutex("").lock();
  const auto oversize = ann.mutex(std::string(1025, 'x')).try_lock();

  EXPECT_EQ(empty.error(), Errc::invalid_argument);
  EXPECT_EQ(oversize.error(), Errc::invalid_argument);
  EXPECT_NE(oversize.error().detail.find("1024"), std::string::npos) << oversize.error().detail;
  EXPECT_TRUE(ann.mutex(std::string(1024, 'x')).try_lock());
}

// 000.040, 000-B25
TEST_P(BadInputContract, an_invalid_ttl_is_rejected_with_the_allowed_range) {
  for (const auto ttl : {0ms, -1ms, 99ms}) {
    const auto refused = ann.mutex("a", {.ttl = ttl}).lock();

    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), Errc::invalid_argument);
    EXPECT_NE(refused.error().detail.find("ttl"), std::string::npos);
  }
  EXPECT_EQ(ann.lease({.ttl = 0ms}).error(), Errc::invalid_argument);
}

// 003.007, 003.012: the error of a lock that is not held names the cause.
TEST_P(BadInputContract, an_empty_guard_reports_why_it_holds_nothing) {
  auto guard = ann.mutex("a").lock().value();
  auto other = std::move(guard);
  EXPECT_TRUE(other.unlock());

  // NOLINTBEGIN(bugprone-use-after-move): what it answers then is what this is about.
  for (auto* used : {&guard, &other}) {
    EXPECT_EQ(used->unlock().error(), Errc::not_held);
    EXPECT_EQ(used->extend().error(), Errc::not_held);
    EXPECT_FALSE(used->unlock().error().detail.empty());
  }
  // NOLINTEND(bugprone-use-after-move)
}

// Nothing leaks: threads and descriptors end with the last handle, whatever the client did.
TEST_P(BadInputContract, closing_the_last_handle_stops_all_threads) {
  // What the service itself starts at its first use stays.
  EXPECT_TRUE(ann.mutex("warm").lock());
  EXPECT_TRUE(bob.mutex("warm").lock());
  const auto threads = thread_count();
  const auto sockets = socket_count();
  {
    auto cid = std::make_optional(connect({.owner = "cid"}));
    auto guard = cid->mutex("a").lock().value();
    std::atomic<bool> is_notified = false;
    const std::stop_callback on_lost(guard.lost(), [&] { is_notified = true; });
    const auto watch = cid->watch("a");
    const auto lease = cid->lease().value();
    EXPECT_EQ(cid->mutex("a").try_lock_for(1ms).error(), Errc::timed_out);
    EXPECT_EQ(cid->mutex("").lock().error(), Errc::invalid_argument);
    EXPECT_GT(thread_count(), threads);
    cid.reset();  // A handle, but not the last one.
    EXPECT_TRUE(guard.owns_lock());
  }

  // A thread that was joined may stand in the list for a moment, and the service has to hear of it.
  EXPECT_TRUE(eventually([&] { return thread_count() == threads; }));
  EXPECT_TRUE(eventually([&] { return socket_count() == sockets; }));
}

}  // namespace
}  // namespace tenure::test
