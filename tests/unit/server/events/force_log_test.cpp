#include "server/events/force_log.hpp"

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "support/store/memory_store.hpp"
#include "sys/log.hpp"

namespace tenure::test {
namespace {

/// Captures the log lines of the process during its lifetime.
class Lines {
 public:
  Lines() {
    log::start({.format = log::Format::json, .write = [this](std::string_view text) {
                  const std::scoped_lock lock(mutex_);
                  text_ += text;
                }});
  }
  ~Lines() { log::stop(); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  /// The lines about forced releases.
  [[nodiscard]] std::vector<std::string> forced() {
    log::flush();
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> found;
    for (std::size_t begin = 0, end = 0; (end = text_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      auto line = text_.substr(begin, end - begin);
      if (line.find("lock_forced") != std::string::npos) {
        found.push_back(std::move(line));
      }
    }
    return found;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

class ForceLogTest : public ::testing::Test {
 protected:
  ForceLogTest() {
    store.listen(force_log);
    store.start();
  }
  ~ForceLogTest() override { store.stop(); }

  void hold(std::uint64_t lease, core::Item item) {
    ASSERT_TRUE(store.ask(core::GrantLease{.id = core::LeaseId(lease),
                                           .ttl = std::chrono::seconds(30),
                                           .client = "c" + std::to_string(lease),
                                           .user = "alice"}));
    ASSERT_TRUE(store.ask(core::Acquire{.lease = core::LeaseId(lease),
                                        .request = core::RequestId(lease),
                                        .items = {std::move(item)},
                                        .owner = "label"}));
  }
  Result<server::Decided> force(const std::string& name) {
    return store.ask(core::ForceRelease{
        .resource = {.name = name}, .operator_name = "bob", .reason = "host is gone"});
  }

  Lines lines;
  server::ForceLog force_log;
  MemoryStore store;
};

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (part) << "\nis not in\n" << (text)

TEST_F(ForceLogTest, a_forced_release_is_one_complete_audit_line) {
  hold(7, {.name = "a"});

  ASSERT_TRUE(force("a"));

  const auto found = lines.forced();
  ASSERT_EQ(found.size(), 1U);
  for (const auto* part :
       {R"("lock":"a")", R"("lease":"7")", R"("owner":"label")", R"("user":"alice")",
        R"("token":"2")", R"("operator":"bob")", R"("reason":"host is gone")"}) {
    EXPECT_HAS(found.front(), part);
  }
}

TEST_F(ForceLogTest, an_ordinary_release_is_not_logged) {
  const auto decided = force("a");

  ASSERT_TRUE(decided);
  EXPECT_TRUE(std::holds_alternative<core::Refused>(decided->outcome));
  EXPECT_TRUE(lines.forced().empty());
}

// Followers and restarting members apply the same entries, but only the leader logs them.
TEST_F(ForceLogTest, a_member_that_does_not_lead_logs_nothing) {
  MemoryStore leader;
  leader.replicate_to({&store});
  leader.start();
  store.follow(2, "10.0.0.2:7420");
  (void)leader.ask(core::GrantLease{.id = core::LeaseId(7), .ttl = std::chrono::seconds(30)});
  (void)leader.ask(core::Acquire{
      .lease = core::LeaseId(7), .request = core::RequestId(1), .items = {{.name = "a"}}});

  EXPECT_FALSE(force("a"));
  const auto forced = leader.ask(core::ForceRelease{.resource = {.name = "a"}});
  ASSERT_TRUE(forced);
  EXPECT_TRUE(std::holds_alternative<core::Forced>(forced->outcome));
  store.look([](const server::View& view) { EXPECT_TRUE(view.state.locks.locks().empty()); });

  EXPECT_TRUE(lines.forced().empty());
  leader.stop();
}

TEST_F(ForceLogTest, a_hold_of_several_ranges_is_one_line_and_many_holders_are_limited) {
  const auto keys = [](const char* from, const char* to) {
    return core::Item{.name = "s",
                      .claim = core::Keys{.range = BytesRange::half_open(from, to).value()}};
  };
  ASSERT_TRUE(store.ask(core::GrantLease{.id = core::LeaseId(1), .ttl = std::chrono::seconds(30)}));
  ASSERT_TRUE(store.ask(core::Acquire{.lease = core::LeaseId(1),
                                      .request = core::RequestId(1),
                                      .items = {keys("a", "b"), keys("c", "d")}}));
  ASSERT_TRUE(
      store.ask(core::ForceRelease{.resource = {.name = "s", .kind = core::ResourceKind::space}}));
  EXPECT_EQ(lines.forced().size(), 1U);

  for (std::uint64_t lease = 10; lease < 35; ++lease) {
    hold(lease, {.name = "pool", .claim = core::Permits{.capacity = 100, .wanted = 1}});
  }
  ASSERT_TRUE(force("pool"));

  const auto found = lines.forced();
  ASSERT_EQ(found.size(), 1U + server::ForceLog::lines_max);
  EXPECT_HAS(found.back(), R"("holds":25)");
}

}  // namespace
}  // namespace tenure::test
