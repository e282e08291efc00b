#include "backends/url.hpp"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

#include "support/wait_until.hpp"

namespace tenure::backends {
namespace {

std::string error_of(std::string_view text) {
  const auto url = parse_url(text);
  return url ? "none" : url.error().detail;
}

TEST(Url, a_url_has_a_scheme_an_authority_a_path_and_options) {
  const auto url = parse_url("tenure://a:7420,b:7421/x?key_prefix=p%2F&n=1").value();

  EXPECT_EQ(url.scheme, "tenure");
  EXPECT_EQ(url.authority.text, "a:7420,b:7421");
  EXPECT_EQ(url.path.text, "x");
  ASSERT_EQ(url.parameters.size(), 2U);
  EXPECT_EQ(url.parameters[0].key.text, "key_prefix");
  EXPECT_EQ(url.parameters[0].value.text, "p/");
  EXPECT_EQ(url.parameters[1].key.position, 41U);
}

TEST(Url, only_the_scheme_is_required) {
  const auto url = parse_url("memory://").value();

  EXPECT_EQ(url.scheme, "memory");
  EXPECT_EQ(url.authority.text, "");
  EXPECT_EQ(url.path.text, "");
}

// Three backends take credentials; they must agree on where a password ends.
TEST(Url, credentials_are_parsed_from_the_authority) {
  const auto taken = [](std::string_view text) {
    auto url = parse_url(text).value();
    const auto login = take_login(url);
    const auto servers = std::to_string(url.authority.position) + ' ' + url.authority.text;
    return !login ? servers : login->user + '|' + login->password.value_or("none") + '|' + servers;
  };

  EXPECT_EQ(taken("a://h:1"), "4 h:1");
  EXPECT_EQ(taken("a://u@h:1"), "u|none|6 h:1");
  EXPECT_EQ(taken("a://u:p%40:q@h:1,i"), "u|p@:q|13 h:1,i");
  EXPECT_EQ(taken("a://:p@h"), "|p|7 h");
  EXPECT_EQ(taken("a://u:@h"), "u||7 h");
  EXPECT_EQ(taken("a://u%40h"), "4 u@h");
}

TEST(Url, a_url_error_names_the_position) {
  EXPECT_TRUE(error_of("").starts_with("at 0: "));
  EXPECT_TRUE(error_of("memory").starts_with("at 6: "));
  EXPECT_TRUE(error_of("memory:/x").starts_with("at 6: "));
  EXPECT_TRUE(error_of("Memory://").starts_with("at 0: "));
  EXPECT_TRUE(error_of("memory://a%zz").starts_with("at 10: "));
  EXPECT_TRUE(error_of("memory://a%2").starts_with("at 10: "));
  EXPECT_TRUE(error_of("memory://a b").starts_with("at 10: "));
  EXPECT_TRUE(error_of("memory://a?key").starts_with("at 11: "));
  EXPECT_TRUE(error_of("memory://a?k=v&=w").starts_with("at 15: "));
}

TEST(Url, a_list_of_servers_is_parsed) {
  using Endpoints = std::vector<Endpoint>;
  const auto servers = [](std::string_view text) {
    return endpoints_of(parse_url(text).value(), 7420);
  };

  EXPECT_EQ(servers("tenure://a").value(), (Endpoints{{"a", 7420}}));
  EXPECT_EQ(servers("tenure://a:1,[::1]:2,[::2]").value(),
            (Endpoints{{"a", 1}, {"::1", 2}, {"::2", 7420}}));
  EXPECT_TRUE(servers("tenure://").error().detail.starts_with("at 9: "));
  EXPECT_TRUE(servers("tenure://a,,b").error().detail.starts_with("at 11: "));
  EXPECT_TRUE(servers("tenure://a:x").error().detail.starts_with("at 10: "));
  EXPECT_TRUE(servers("tenure://a:70000").error().detail.starts_with("at 10: "));
  EXPECT_TRUE(servers("tenure://[::1").error().detail.starts_with("at 9: "));
}

}  // namespace
}  // namespace tenure::backends

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

// 000.017: one string selects the service.
TEST(Connect, clients_with_one_name_share_a_store) {
  const auto ann = connect("memory://connect_test").value();
  const auto bob = connect("memory://connect_test").value();
  const auto cid = connect("memory://").value();
  const auto guard = ann.mutex("a").lock().value();

  EXPECT_FALSE(bob.mutex("a").try_lock());
  EXPECT_TRUE(cid.mutex("a").try_lock());
  EXPECT_TRUE(ann.is_connected());
}

// Neither threads nor descriptors leak.
TEST(Connect, threads_and_files_end_with_the_last_handle) {
  const auto count = [](const char* what) {
    return std::distance(std::filesystem::directory_iterator(what), {});
  };
  // ThreadSanitizer starts a thread of its own with the first thread of the program.
  std::thread([] {}).join();
  const auto threads = count("/proc/self/task");
  const auto files = count("/proc/self/fd");
  {
    const auto client = connect("memory://").value();
    auto guard = client.mutex("a").lock().value();
    std::atomic<bool> is_notified = false;
    const std::stop_callback on_lost(guard.lost(), [&] { is_notified = true; });
    const auto lease = client.lease().value();
    EXPECT_TRUE(lease.revoke());
    EXPECT_GT(count("/proc/self/task"), threads);
  }

  // A thread that was joined may stand in the list for a moment.
  EXPECT_TRUE(eventually([&] { return count("/proc/self/task") == threads; }));
  EXPECT_EQ(count("/proc/self/fd"), files);
}

TEST(Connect, opening_a_client_does_not_wait) {
  const auto began = std::chrono::steady_clock::now();
  constexpr int clients = 20;
  for (int i = 0; i < clients; ++i) {
    EXPECT_TRUE(connect("memory://"));
  }

  EXPECT_LT((std::chrono::steady_clock::now() - began) / clients, 20ms);
}

TEST(Connect, a_store_ends_with_its_last_client) {
  FencingToken token{};
  {
    const auto client = connect("memory://forgotten").value();
    token = client.mutex("a").lock().value().token();
  }

  EXPECT_LE(connect("memory://forgotten").value().mutex("a").lock().value().token(), token);
}

// 000.018, 000.027, 000.029: options in the URL.
TEST(Connect, options_are_read_from_the_url) {
  const auto client = connect("memory://?owner=me&key_prefix=test/&request_timeout=2s").value();

  EXPECT_EQ(client.owner(), "me");
  EXPECT_EQ(client.mutex("a").name(), "test/a");
}

TEST(Connect, an_invalid_url_option_is_reported_with_its_position) {
  const auto error_of = [](std::string_view url) { return connect(url).error(); };

  EXPECT_EQ(error_of("memory"), Errc::invalid_argument);
  EXPECT_EQ(error_of("nosuch://a"), Errc::unsupported);
  EXPECT_NE(error_of("nosuch://a").detail.find("memory://"), std::string::npos);
  // The name of the daemon is not a scheme.
  EXPECT_EQ(error_of("tenured://a"), Errc::unsupported);
  EXPECT_EQ(error_of("tenured://a").detail.find("tenure::"), std::string::npos);
  EXPECT_EQ(error_of("memory://a?colour=red"), Errc::invalid_argument);
  EXPECT_TRUE(error_of("memory://a?colour=red").detail.starts_with("at 11: unknown option"));
  EXPECT_TRUE(error_of("memory://?request_timeout=2x").detail.starts_with("at 26: "));
  EXPECT_TRUE(error_of("memory://a/b").detail.starts_with("at 11: "));
  EXPECT_EQ(error_of("memory://?request_timeout=0s"), Errc::invalid_argument);
  EXPECT_TRUE(error_of("memory://?request_timeout=1500us").detail.starts_with("at 26: "));
  EXPECT_TRUE(error_of("memory://?busy_poll=50").detail.starts_with("at 20: "));
  EXPECT_EQ(error_of("memory://?busy_poll=11ms"), Errc::invalid_argument);
  EXPECT_EQ(error_of("memory://?busy_poll=50us"), Errc::unsupported);
}

TEST(Connect, options_are_checked) {
  EXPECT_EQ(connect("memory://", {.owner = std::string(257, 'x')}).error(), Errc::invalid_argument);
  EXPECT_EQ(connect("memory://", {.owner = "a\nb"}).error(), Errc::invalid_argument);
  EXPECT_EQ(connect("memory://", {.request_timeout = 0ms}).error(), Errc::invalid_argument);
  EXPECT_EQ(connect("memory://", {.busy_poll = -1us}).error(), Errc::invalid_argument);
}

// Polling costs a core, so it must be requested.
TEST(Connect, busy_polling_is_off_by_default) {
  EXPECT_EQ(ConnectOptions{}.busy_poll, 0us);
}

}  // namespace
}  // namespace tenure::test
