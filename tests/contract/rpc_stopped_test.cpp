#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/process.hpp"
#include "support/wait_until.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto request_timeout = 300ms;
/// A machine that is busy with other tests takes its time, too.
constexpr auto much_longer = request_timeout + 5s;

/// The daemon in a process of its own.
class Tenured {
 public:
  Tenured() {
    if (!eventually([this] { return !port().empty(); })) {
      throw std::runtime_error("tenured does not start");
    }
  }
  /// Both are the same; the client does not know that.
  [[nodiscard]] std::string url() const {
    return "tenure://127.0.0.1:" + port() + ",localhost:" + port();
  }
  [[nodiscard]] const Process& process() const { return process_; }

 private:
  [[nodiscard]] std::string port() const {
    std::ifstream file(folder_ / "log");
    const std::string log{std::istreambuf_iterator<char>(file), {}};
    const auto at = log.find("\"grpc_port\":");
    const auto begin = at == std::string::npos ? at : log.find_first_of("0123456789", at);
    return begin == std::string::npos
               ? std::string()
               : log.substr(begin, log.find_first_not_of("0123456789", begin) - begin);
  }

  ServerFolder folder_;
  Process process_{{.words = {TENURED, "--data-dir", folder_ / "data", "--listen-grpc",
                              "127.0.0.1:0", "--listen-http", "off", "--log-format", "json"},
                    .log = folder_ / "log"}};
};

template <class Call>
Clock::duration time_of(Call call) {
  const auto began = Clock::now();
  call();
  return Clock::now() - began;
}

// SIGSTOP: connections stay open, the kernel accepts new ones, and no reply arrives. A watch() once
// blocked as long as other threads were busy, and the destructor of a client for ever.
TEST(RpcStopped, calls_return_soon_after_their_request_timeout) {
  const Tenured tenured;
  auto client = std::make_optional(
      tenure::connect(tenured.url(), {.request_timeout = request_timeout}).value());
  auto before = std::make_optional(client->watch("a").value());
  std::atomic<bool> is_over = false;
  std::atomic<std::size_t> tries = 0;
  std::vector<std::jthread> others;

  tenured.process().pause();
  for (int n = 0; n < 3; ++n) {
    others.emplace_back([&, busy = *client] {
      while (!is_over) {
        EXPECT_FALSE(busy.mutex("b").try_lock_for(1ms));
        ++tries;
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return tries > 10; }));

  std::optional<Watch> watch;
  EXPECT_LT(time_of([&] { watch = client->watch("a").value(); }), much_longer);
  EXPECT_LT(time_of([&] { EXPECT_FALSE(client->holders("a")); }), much_longer);
  EXPECT_LT(time_of([&] { EXPECT_FALSE(client->lease()); }), much_longer);
  EXPECT_LT(time_of([&] { EXPECT_FALSE(watch->next_for(10ms)); }), much_longer);
  EXPECT_LT(time_of([&] { watch.reset(); }), much_longer);
  is_over = true;
  others.clear();
  before.reset();
  EXPECT_LT(time_of([&] { client.reset(); }), much_longer);

  tenured.process().resume();
}

}  // namespace
}  // namespace tenure::test
