#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include <tenure/client/client.hpp>

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

class Options : public ::testing::Test {
 protected:
  Error refusal(std::string name, LockOptions options = {}) const {
    const auto guard = client.mutex(std::move(name), std::move(options)).lock();
    return guard ? Error{.code = Errc{}} : guard.error();
  }

  Client client = connect("memory://").value();
};

// 000.019, 000.021-024, 000.034: the defaults.
TEST_F(Options, the_defaults_are_those_of_the_documentation) {
  const LockOptions options;

  EXPECT_EQ(options.ttl, 30s);
  EXPECT_EQ(options.renewals_per_ttl, 3);
  EXPECT_EQ(options.max_wait, std::nullopt);
  EXPECT_EQ(options.lease, std::nullopt);
  EXPECT_EQ(options.reentry, Reentry::refused);
  EXPECT_EQ(Attempts{}.delay, 50ms);
  EXPECT_EQ(ConnectOptions{}.request_timeout, 5s);
  EXPECT_EQ(ConnectOptions{}.key_prefix, "");
}

// 000.020, 000.033: every client has its own owner name.
TEST_F(Options, the_default_owner_is_host_process_and_a_random_number) {
  const auto other = connect("memory://").value();

  EXPECT_NE(client.owner(), other.owner());
  EXPECT_FALSE(client.owner().empty());
}

// 000.025-032, 000.035, 000.036: designated initializers set every field.
TEST_F(Options, every_field_can_be_set) {
  const LockOptions options{.ttl = 1s,
                            .renewals_per_ttl = 0,
                            .max_wait = 5ms,
                            .lease = std::nullopt,
                            .reentry = Reentry::refused,
                            .metadata = "nightly",
                            .on_at_risk = [](const AtRisk&) {}};
  const auto copy = options;

  const auto guard = client.mutex("a", copy).lock();

  ASSERT_TRUE(guard);
  EXPECT_EQ(client.holders("a").value().front().metadata, "nightly");
  EXPECT_EQ(client.holders("a").value().front().owner, client.owner());
}

// 000.016, 000.039, 003.010, 003-B2: one naming rule.
TEST_F(Options, a_name_is_1_to_1024_bytes_of_text) {
  EXPECT_EQ(refusal(""), Errc::invalid_argument);
  EXPECT_EQ(refusal(std::string(1025, 'x')), Errc::invalid_argument);
  EXPECT_EQ(refusal("a\nb"), Errc::invalid_argument);
  EXPECT_EQ(refusal("\xff"), Errc::invalid_argument);
  EXPECT_TRUE(client.mutex(std::string(1024, 'x')).lock());
  EXPECT_TRUE(client.mutex("käse/42").lock());
}

TEST_F(Options, a_prefix_without_a_name_is_invalid) {
  const auto prefixed = connect("memory://", {.key_prefix = "p/"}).value();

  EXPECT_EQ(prefixed.mutex("").lock().error(), Errc::invalid_argument);
  EXPECT_EQ(prefixed.mutex(std::string(1023, 'x')).lock().error(), Errc::invalid_argument);
}

// 000.040, 000-B25, 003-B17: a TTL is neither zero nor unlimited.
TEST_F(Options, a_ttl_is_within_the_limits_of_the_service) {
  EXPECT_EQ(refusal("a", {.ttl = 0ms}), Errc::invalid_argument);
  EXPECT_NE(refusal("a", {.ttl = -5ms}).detail.find("must be positive, got -5"), std::string::npos);
  EXPECT_NE(refusal("a", {.ttl = 99ms}).detail.find("accepts 100 ms to"), std::string::npos);
  EXPECT_EQ(refusal("a", {.ttl = 25h}), Errc::invalid_argument);
  EXPECT_EQ(client.lease({.ttl = 0ms}).error(), Errc::invalid_argument);
  EXPECT_TRUE(client.mutex("a", {.ttl = 100ms}).lock());
}

TEST_F(Options, other_options_are_validated) {
  EXPECT_EQ(refusal("a", {.renewals_per_ttl = -1}), Errc::invalid_argument);
  EXPECT_EQ(refusal("a", {.renewals_per_ttl = 101}), Errc::invalid_argument);
  EXPECT_EQ(refusal("a", {.max_wait = -1ms}), Errc::invalid_argument);
  EXPECT_EQ(refusal("a", {.metadata = std::string(4097, 'x')}), Errc::invalid_argument);
  EXPECT_EQ(client.mutex("a").try_lock({.count = 1, .delay = -1ms}).error(),
            Errc::invalid_argument);
}

TEST_F(Options, the_names_of_all_of_are_limited_and_distinct) {
  EXPECT_EQ(client.lock_all({}).error(), Errc::invalid_argument);
  EXPECT_EQ(client.lock_all({"a", "b", "a"}).error(), Errc::invalid_argument);
  EXPECT_EQ(client.lock_all(std::vector<std::string>(65, "a")).error(), Errc::invalid_argument);
}

// Every acquire of an invalid lock reports the error.
TEST_F(Options, an_invalid_lock_fails_in_every_form) {
  const auto mutex = client.mutex("");

  EXPECT_EQ(mutex.lock().error(), Errc::invalid_argument);
  EXPECT_EQ(mutex.try_lock().error(), Errc::invalid_argument);
  EXPECT_EQ(mutex.try_lock_for(1s).error(), Errc::invalid_argument);
  EXPECT_EQ(mutex.try_lock({.count = 2}).error(), Errc::invalid_argument);
  EXPECT_EQ(client.election("").leader().error(), Errc::invalid_argument);
  EXPECT_EQ(client.election("").observe().error(), Errc::invalid_argument);
  EXPECT_EQ(client.election("a").campaign(std::string(4097, 'x')).error(), Errc::invalid_argument);
  EXPECT_EQ(client.with_lock("", [] {}).error(), Errc::invalid_argument);
}

// 000.038: handles are cheap to copy and refer to the same lock.
TEST_F(Options, copies_of_a_lock_are_the_same_lock) {
  const auto mutex = client.mutex("a");
  const auto copy = mutex;
  const auto guard = mutex.lock();

  EXPECT_FALSE(copy.try_lock());
}

// 000.037
TEST_F(Options, states_and_events_have_names) {
  EXPECT_EQ(to_string(GuardState::held), "held");
  EXPECT_EQ(to_string(GuardState::at_risk), "at_risk");
  EXPECT_EQ(to_string(GuardState::lost), "lost");
  EXPECT_EQ(to_string(GuardState::released), "released");
  EXPECT_EQ(to_string(LockEventType::granted), "granted");
}

}  // namespace
}  // namespace tenure::test
