#include <fstream>
#include <latch>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/redis/server.hpp"
#include "support/wait_until.hpp"

// A lock has one record format, documented in docs/reference/redis_keys.md.

namespace tenure::test {
namespace {

/// Patterns of the head by its first letter, from the table of docs/reference/redis_keys.md.
std::map<char, std::regex> documented_heads() {
  const std::map<std::string, std::string> fields{
      {"token", "\\d+"},     {"member.request", "(-|[0-9a-f]{16}(\\.\\d+)?\\.\\d+)"},
      {"kind", "(L|P\\d+)"}, {"want", "(X|S|P\\d+)"},
      {"client", "\\w+"},    {"label", "[^\\n]*\\n[^\\n]*"},
      {"ticket", "\\d+"},    {"mode", "[XSP-]"},
      {"used", "\\d+"},      {"upgrader", "\\S+"},
      {"request", "\\d+"},   {"till", "\\d+"},
      {"last", "\\S+"},
  };
  std::map<char, std::regex> patterns;
  std::ifstream page(TENURE_SOURCE_DIR "/docs/reference/redis_keys.md");
  const std::regex row("\\| `([THF]) ([a-z. ]+)` \\|.*");
  for (std::string line; std::getline(page, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, row)) {
      continue;
    }
    std::string pattern = found[1];
    std::istringstream names(found[2]);
    for (std::string name; names >> name;) {
      EXPECT_TRUE(fields.contains(name)) << name;
      pattern += " " + fields.at(name);
    }
    patterns.emplace(found[1].str().front(), pattern);
  }
  return patterns;
}

class RedisRecord : public ::testing::Test {
 protected:
  void expect_head(const std::string& name, char form) {
    const auto head = server.command({"GET", "{tenure:" + name + "}"});
    EXPECT_TRUE(head.starts_with(form) && std::regex_match(head, heads.at(form))) << head;
  }

  RedisServer server;
  const std::map<char, std::regex> heads = documented_heads();
  const Client client = connect(server.url(), {.request_timeout = test_timeout}).value();
};

TEST_F(RedisRecord, the_reference_page_documents_three_forms) {
  EXPECT_EQ(heads.size(), 3U);
}

TEST_F(RedisRecord, a_lock_of_one_thread_has_the_documented_form) {
  auto guard = client.mutex("a", {.metadata = "note 7"}).lock().value();
  expect_head("a", 'H');
  EXPECT_TRUE(guard.unlock());
  expect_head("a", 'T');
}

TEST_F(RedisRecord, locks_of_many_threads_have_the_documented_form) {
  constexpr int threads_count = 32;
  std::latch holding(threads_count);
  std::latch checked(1);
  std::vector<std::jthread> threads;
  for (int n = 0; n < threads_count; ++n) {
    threads.emplace_back([&, n] {
      const auto mutex = client.mutex(std::to_string(n));
      for (int round = 0; round < 10; ++round) {
        auto guard = mutex.lock();
        EXPECT_TRUE(guard && guard->unlock());
      }
      auto guard = mutex.lock();
      holding.count_down();
      checked.wait();
      EXPECT_TRUE(guard && guard->unlock());
    });
  }
  holding.wait();
  for (int n = 0; n < threads_count; ++n) {
    expect_head(std::to_string(n), 'H');
  }
  checked.count_down();
  threads.clear();
  for (int n = 0; n < threads_count; ++n) {
    expect_head(std::to_string(n), 'T');
  }
}

TEST_F(RedisRecord, a_lock_with_several_members_has_the_documented_form) {
  auto one = client.rw_lock("a").lock_shared().value();
  auto other = client.rw_lock("a").lock_shared().value();
  expect_head("a", 'F');
  EXPECT_TRUE(one.unlock());
  EXPECT_TRUE(other.unlock());
  expect_head("a", 'T');
}

TEST_F(RedisRecord, a_semaphore_has_the_documented_form) {
  auto one = client.semaphore("a", {.capacity = 3}).acquire().value();
  expect_head("a", 'H');
  auto other = client.semaphore("a", {.capacity = 3}).acquire().value();
  expect_head("a", 'F');
  EXPECT_TRUE(one.unlock());
  EXPECT_TRUE(other.unlock());
  expect_head("a", 'T');
}

}  // namespace
}  // namespace tenure::test
