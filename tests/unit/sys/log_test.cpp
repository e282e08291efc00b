#include "sys/log.hpp"

#include <algorithm>
#include <latch>
#include <mutex>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/ids.hpp"
#include "sys/escape.hpp"

namespace tenure::log {
namespace {

using namespace std::chrono_literals;

/// A log whose lines end up here, at a time that stands still.
class Lines : public ::testing::Test {
 protected:
  Options options(Format format = Format::json) {
    return {.format = format,
            .write =
                [this](std::string_view lines) {
                  const std::lock_guard lock(mutex_);
                  text_ += lines;
                },
            .now = [this] { return now_; }};
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  std::size_t lines() { return static_cast<std::size_t>(std::ranges::count(text(), '\n')); }

  std::chrono::system_clock::time_point now_{1714564800123ms};

 private:
  std::mutex mutex_;
  std::string text_;
};

TEST_F(Lines, json_has_time_level_event_and_then_the_fields) {
  Log log(options());

  log.line(Level::info, "lease_expired",
           {{"lease", core::LeaseId{18446744073709551615ULL}},
            {"locks", 3},
            {"late", true},
            {"dur_ms", 1500us},
            {"client", "ann"}});
  log.flush();

  EXPECT_EQ(text(),
            R"({"ts":"2024-05-01T12:00:00.123Z","lvl":"info","event":"lease_expired",)"
            R"("lease":"18446744073709551615","locks":3,"late":true,"dur_ms":1.5,"client":"ann"})"
            "\n");
}

TEST_F(Lines, text_is_one_line_of_key_and_value) {
  Log log(options(Format::text));

  log.line(Level::warning, "disk_slow", {{"dir", "/var/lib/a b"}, {"dur_ms", 12ms}});
  log.flush();

  EXPECT_EQ(text(), "2024-05-01T12:00:00.123Z warning disk_slow dir=\"/var/lib/a b\" dur_ms=12\n");
}

// A name that a client chose must not be able to write a line of its own, or to the terminal.
TEST_F(Lines, a_hostile_field_stays_on_its_line) {
  const std::string hostile = "a\n{\"lvl\":\"error\"}\r\x1b[2J\"\\\xff\xc3 \xc2\x9b\xe2\x80\xae";
  for (const auto format : {Format::json, Format::text}) {
    Log log(options(format));
    log.line(Level::info, "lock", {{"name", hostile}});
  }

  EXPECT_EQ(lines(), 2U);
  EXPECT_TRUE(sys::is_utf8(text()));
  EXPECT_EQ(text().find('\x1b'), std::string::npos);
  EXPECT_EQ(text().find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(text().find("\"lvl\":\"error\""), std::string::npos);
  EXPECT_NE(text().find(R"("a\n{\"lvl\":\"error\"}\r\u001b[2J\"\\\\xff\\xc3 \u009b)"),
            std::string::npos)
      << text();
}

TEST_F(Lines, lines_below_the_level_are_not_written) {
  auto quiet = options();
  quiet.level = Level::warning;
  Log log(quiet);

  log.line(Level::debug, "a");
  log.line(Level::info, "b");
  log.line(Level::error, "c");
  log.flush();

  EXPECT_EQ(lines(), 1U);
}

TEST_F(Lines, a_flood_of_one_event_is_counted_and_others_are_written) {
  auto narrow = options();
  narrow.lines_per_event_max = 3;
  Log log(narrow);

  for (int i = 0; i < 100; ++i) {
    log.line(Level::info, "flood");
  }
  log.line(Level::info, "other");
  log.flush();
  EXPECT_EQ(lines(), 4U);
  now_ += 1s;
  log.line(Level::info, "flood");
  log.flush();

  EXPECT_EQ(lines(), 5U);
  EXPECT_NE(text().find(R"("event":"flood","silenced":97)"), std::string::npos) << text();
}

TEST_F(Lines, suppressed_lines_are_counted_at_the_end) {
  auto narrow = options();
  narrow.lines_per_event_max = 1;
  {
    Log log(narrow);
    log.line(Level::info, "flood");
    log.line(Level::info, "flood");
  }
  EXPECT_NE(text().find(R"("event":"log_lines_silenced","of":"flood","count":1)"),
            std::string::npos)
      << text();
}

// A stalled reader of stderr must not stall a thread that logs.
TEST_F(Lines, a_stalled_writer_costs_lines_and_not_time) {
  std::latch writing{1};
  std::latch may_go{1};
  std::vector<std::string> written;
  {
    Options slow{.format = Format::json, .queue_lines_max = 2};
    slow.write = [&](std::string_view lines) {
      written.emplace_back(lines);
      if (written.size() == 1) {
        writing.count_down();
        may_go.wait();
      }
    };
    Log log(slow);
    log.line(Level::info, "first");
    writing.wait();
    for (const auto* event : {"a", "b", "c", "d"}) {
      log.line(Level::info, event);
    }
    may_go.count_down();
    log.flush();
    log.line(Level::info, "last");
  }

  ASSERT_GE(written.size(), 3U);
  EXPECT_NE(written[2].find(R"("event":"log_lines_dropped","count":2)"), std::string::npos);
}

TEST_F(Lines, threads_do_not_mix_their_lines) {
  auto wide = options();
  wide.lines_per_event_max = 10'000;
  {
    Log log(wide);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&log, i] {
        for (int j = 0; j < 100; ++j) {
          log.line(Level::info, "turn", {{"thread", i}, {"text", std::string(50, 'x')}});
        }
      });
    }
  }

  const std::regex whole(
      R"((\{"ts":"[^"]*","lvl":"info","event":"turn","thread":\d,"text":"x{50}"\}\n))");
  const auto all = text();
  EXPECT_EQ(std::distance(std::sregex_iterator(all.begin(), all.end(), whole), {}), 400);
  EXPECT_EQ(lines(), 400U);
}

TEST(Escape, utf8_is_distinguished_from_all_other_bytes) {
  for (const auto* good : {"", "a", "\u00e9", "\u20ac", "\U0001F512", "\U0010FFFF"}) {
    EXPECT_TRUE(sys::is_utf8(good)) << good;
  }
  for (const auto* bad : {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xe2\x82", "\xff", "a\xc3"}) {
    EXPECT_FALSE(sys::is_utf8(bad)) << testing::PrintToString(bad);
  }
}

TEST(Escape, base64_has_the_values_of_rfc_4648) {
  EXPECT_EQ(sys::base64(""), "");
  EXPECT_EQ(sys::base64("f"), "Zg==");
  EXPECT_EQ(sys::base64("fo"), "Zm8=");
  EXPECT_EQ(sys::base64("foo"), "Zm9v");
  EXPECT_EQ(sys::base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(sys::base64("\xff\xfe"), "//4=");
}

}  // namespace
}  // namespace tenure::log
