#include "backends/url_options.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tenure::backends {
namespace {

using namespace std::chrono_literals;

/// Options behind "x://?", so that the first one is at 5.
Url url_with(std::string_view options) {
  return parse_url("x://?" + std::string(options)).value();
}

/// What consume() reports, or nothing.
std::string error_of(UrlOptions& options, std::string_view text) {
  auto url = url_with(text);
  const auto consumed = options.consume(url);
  return consumed ? "" : consumed.error().detail;
}

TEST(UrlOptions, options_are_removed_from_the_url_and_set_their_targets) {
  std::string name = "default";
  std::string other = "default";
  std::chrono::milliseconds delay{1};
  std::optional<std::chrono::milliseconds> wait;
  std::uint16_t count = 1;
  bool is_fast = false;
  auto url = url_with("name=a%20b&delay=2s&count=65535&wait=1m&fast=true");

  ASSERT_TRUE(UrlOptions()
                  .text("name", name)
                  .text("other", other)
                  .duration("delay", delay, {})
                  .duration("wait", wait, {})
                  .number("count", count)
                  .flag("fast", is_fast)
                  .consume(url));

  EXPECT_TRUE(url.parameters.empty());
  EXPECT_EQ(name, "a b");
  EXPECT_EQ(other, "default");
  EXPECT_EQ(delay, 2s);
  EXPECT_EQ(wait, 1min);
  EXPECT_EQ(count, 65535);
  EXPECT_TRUE(is_fast);
}

TEST(UrlOptions, an_unknown_option_is_an_error_that_names_its_position_and_all_known_ones) {
  std::string name;
  UrlOptions options(UrlOptions::common);
  options.text("namespace", name);

  EXPECT_EQ(error_of(options, "namespace=a&colour=red"),
            "at 17: unknown option \"colour\"; known options: owner, key_prefix, request_timeout, "
            "namespace");
}

// The second of two tls_ca options must not silently decide which CA the client trusts.
TEST(UrlOptions, an_option_that_is_given_twice_is_an_error) {
  std::string name;
  UrlOptions options;
  options.text("name", name);

  EXPECT_EQ(error_of(options, "name=a&name=b"),
            "at 12: the option \"name\" is given twice; give it once");
}

TEST(UrlOptions, consume_known_leaves_other_options_in_the_url) {
  std::string name;
  auto url = url_with("colour=red&name=a&size=2");

  ASSERT_TRUE(UrlOptions().text("name", name).consume_known(url));

  ASSERT_EQ(url.parameters.size(), 2U);
  EXPECT_EQ(url.parameters[0].key.text, "colour");
  EXPECT_EQ(url.parameters[1].key.text, "size");
}

TEST(UrlOptions, a_duration_outside_its_limits_or_without_a_unit_is_an_error) {
  for (const auto* value : {"0ms", "1441m", "50", "ms", "-5ms", "5%20ms", "2h", "1500us",
                            "9999999999999999999s", "1000000000m"}) {
    std::chrono::milliseconds delay{7};
    UrlOptions options;
    options.duration("delay", delay, {.least = 1ms, .most = 24h});

    EXPECT_EQ(error_of(options, "delay=" + std::string(value)),
              "at 11: delay is a time from 1ms to 1440m, such as 50ms, 2s or 1m")
        << value;
    EXPECT_EQ(delay, 7ms) << value;
  }
}

TEST(UrlOptions, a_duration_has_the_resolution_of_its_target) {
  std::chrono::microseconds poll{};
  UrlOptions options;
  options.duration("poll", poll, {});

  EXPECT_EQ(error_of(options, "poll=1500us"), "");
  EXPECT_EQ(poll, 1500us);
}

TEST(UrlOptions, a_number_outside_its_limits_is_an_error) {
  for (const auto* value : {"0", "16", "-1", "1x", "x", "99999999999999999999"}) {
    std::uint32_t count = 7;
    UrlOptions options;
    options.number("count", count, {.least = 1, .most = 15});

    EXPECT_EQ(error_of(options, "count=" + std::string(value)),
              "at 11: count is a number from 1 to 15")
        << value;
    EXPECT_EQ(count, 7U) << value;
  }
}

TEST(UrlOptions, a_flag_is_true_or_false) {
  bool is_fast = true;
  UrlOptions options;
  options.flag("fast", is_fast);

  EXPECT_EQ(error_of(options, "fast=yes"), "at 10: fast is true or false");
  EXPECT_TRUE(is_fast);
}

TEST(UrlOptions, a_text_that_fails_its_check_is_an_error_at_its_position) {
  std::string name = "default";
  UrlOptions options;
  options.text("name", name, [](const std::string& value) {
    return std::string(value.empty() ? "a name is not empty" : "");
  });

  EXPECT_EQ(error_of(options, "name="), "at 10: a name is not empty");
  EXPECT_EQ(name, "default");
}

// An empty file is not the same as no file: without tls_ca the authorities of the system count.
TEST(UrlOptions, a_file_is_read_and_an_empty_or_missing_one_is_an_error) {
  const auto folder = std::filesystem::temp_directory_path();
  const auto prefix = "url_options_test_" + std::to_string(::getpid());
  const auto full = folder / (prefix + "_full.pem");
  const auto empty = folder / (prefix + "_empty.pem");
  std::ofstream(full) << "content";
  std::ofstream{empty};
  const auto error_with = [](const std::filesystem::path& path,
                             std::optional<UrlOptions::File>& file) {
    UrlOptions options;
    options.file("file", file);
    return error_of(options, "file=" + path.string());
  };
  std::optional<UrlOptions::File> file;

  EXPECT_EQ(error_with("/nowhere/a", file), "at 10: cannot read /nowhere/a");
  EXPECT_EQ(error_with(empty, file), "at 10: " + empty.string() + " is empty or not a file");
  EXPECT_EQ(error_with(folder, file), "at 10: " + folder.string() + " is empty or not a file");
  EXPECT_FALSE(file);
  EXPECT_EQ(error_with(full, file), "");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->content, "content");
  EXPECT_EQ(file->position, 10U);
  std::filesystem::remove(full);
  std::filesystem::remove(empty);
}

TEST(UrlOptions, the_common_options_set_those_of_the_client) {
  auto url = url_with("owner=me&request_timeout=2s&key_prefix=a/&busy_poll=50us&size=2");
  ConnectOptions options;

  ASSERT_TRUE(consume_common_options(url, options));

  EXPECT_EQ(options.owner, "me");
  EXPECT_EQ(options.key_prefix, "a/");
  EXPECT_EQ(options.request_timeout, 2s);
  EXPECT_EQ(options.busy_poll, 50us);
  EXPECT_EQ(url.parameters.size(), 1U);
}

}  // namespace
}  // namespace tenure::backends
