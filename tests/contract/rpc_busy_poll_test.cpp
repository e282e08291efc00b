#include <chrono>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/rpc/service.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds process_cpu_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// CPU time of client and server, which are both in this process, while a client waits for a lock
/// and times out.
std::chrono::nanoseconds cpu_time_of_a_wait(const RpcService& service, const std::string& options,
                                            std::chrono::milliseconds wait) {
  const auto holder = connect(service.url()).value();
  const auto waiter = connect(service.url(options)).value();
  const auto guard = holder.mutex("a").lock().value();
  const auto before = process_cpu_time();
  EXPECT_EQ(waiter.mutex("a").try_lock_for(wait).error(), Errc::timed_out);
  return process_cpu_time() - before;
}

// With the default no thread polls, neither in the client nor in the server.
TEST(BusyPoll, a_wait_with_default_options_uses_almost_no_cpu) {
  const RpcService service;
  EXPECT_LT(cpu_time_of_a_wait(service, "", 500ms), 200ms);
}

TEST(BusyPoll, a_client_that_polls_locks_waits_and_unlocks) {
  const RpcService service;
  EXPECT_GT(cpu_time_of_a_wait(service, "?busy_poll=50us", 5ms), 0ms);
  const auto client = connect(service.url(), {.busy_poll = 50us}).value();
  for (int n = 0; n < 100; ++n) {
    EXPECT_TRUE(client.mutex("b").lock().value().unlock());
  }
}

TEST(BusyPoll, a_time_without_a_unit_is_refused) {
  const RpcService service;
  EXPECT_EQ(connect(service.url("?busy_poll=50")).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace tenure::test
