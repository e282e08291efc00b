#include "server/auth/rights.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "server/auth/access.hpp"
#include "server/auth/denial_log_limiter.hpp"

namespace tenure::server::auth {
namespace {

Rights of(std::vector<Rule> rules) {
  return Rights(std::move(rules));
}

TEST(Rights, without_rules_nothing_is_allowed) {
  const Rights none;

  EXPECT_FALSE(none.may(Verb::read, ""));
  EXPECT_FALSE(none.may(Verb::read, "a"));
  EXPECT_FALSE(none.may_any(Verb::read));
  EXPECT_FALSE(none.may_all(Verb::read));
  EXPECT_EQ(none.skip("a"), std::nullopt);
}

TEST(Rights, each_level_includes_those_before_it) {
  const auto rights = of({{"r/", Level::read}, {"l/", Level::lock}, {"a/", Level::admin}});

  EXPECT_TRUE(rights.may(Verb::read, "r/1"));
  EXPECT_FALSE(rights.may(Verb::lock, "r/1"));
  EXPECT_TRUE(rights.may(Verb::read, "l/1"));
  EXPECT_TRUE(rights.may(Verb::lock, "l/1"));
  EXPECT_FALSE(rights.may(Verb::admin, "l/1"));
  EXPECT_TRUE(rights.may(Verb::admin, "a/1"));
}

// Whether a rule allows or denies does not matter: a shorter prefix never overrides a longer one.
TEST(Rights, the_longest_prefix_decides) {
  const auto rights = of({{"", Level::read},
                          {"app/", Level::lock},
                          {"app/secret/", Level::none},
                          {"app/secret/mine", Level::admin}});

  EXPECT_TRUE(rights.may(Verb::read, "other"));
  EXPECT_FALSE(rights.may(Verb::lock, "other"));
  EXPECT_TRUE(rights.may(Verb::lock, "app/x"));
  EXPECT_FALSE(rights.may(Verb::read, "app/secret/x"));
  EXPECT_FALSE(rights.may(Verb::read, "app/secret/min"));
  EXPECT_TRUE(rights.may(Verb::admin, "app/secret/mine"));
  EXPECT_TRUE(rights.may(Verb::admin, "app/secret/mine/too"));
  EXPECT_TRUE(rights.may(Verb::read, "app/secret0"));
}

TEST(Rights, a_prefix_is_bytes_and_no_path) {
  const auto rights = of({{"app", Level::lock}});

  EXPECT_TRUE(rights.may(Verb::lock, "app"));
  EXPECT_TRUE(rights.may(Verb::lock, "apple"));
  EXPECT_FALSE(rights.may(Verb::lock, "ap"));
}

TEST(Rights, the_first_of_two_rules_for_one_prefix_applies) {
  const auto rights = of({{"a", Level::read}, {"a", Level::admin}});

  EXPECT_EQ(rights.rules().size(), 1U);
  EXPECT_FALSE(rights.may(Verb::lock, "a"));
}

TEST(Rights, may_any_and_may_all_consider_rules_below_the_prefix) {
  const auto rights = of({{"app/", Level::read}, {"app/a/", Level::none}, {"b/c/", Level::read}});

  EXPECT_TRUE(rights.may_any(Verb::read, "app/"));
  EXPECT_TRUE(rights.may_any(Verb::read, ""));
  EXPECT_TRUE(rights.may_any(Verb::read, "b/"));
  EXPECT_FALSE(rights.may_any(Verb::read, "app/a/"));
  EXPECT_FALSE(rights.may_any(Verb::lock, ""));
  EXPECT_TRUE(rights.may_all(Verb::read, "app/b"));
  EXPECT_FALSE(rights.may_all(Verb::read, "app/"));
  EXPECT_FALSE(rights.may_all(Verb::read, "b/"));
}

std::string any_name(const std::vector<int>& letters) {
  std::string name;
  for (const auto letter : letters) {
    name += static_cast<char>('a' + (letter & 1));
  }
  return name;
}

std::vector<Rule> any_rules(const std::vector<std::pair<std::vector<int>, unsigned>>& drawn) {
  std::vector<Rule> rules;
  for (const auto& [letters, level] : drawn) {
    rules.push_back({.prefix = any_name(letters), .level = static_cast<Level>(level % 4)});
  }
  return rules;
}

// The search by order and parents must agree with a linear scan of all rules.
RC_GTEST_PROP(Rights, the_rule_found_is_the_one_a_plain_search_finds,
              (const std::vector<std::pair<std::vector<int>, unsigned>>& drawn,
               const std::vector<int>& letters)) {
  const auto rules = any_rules(drawn);
  const auto name = any_name(letters);
  const Rights rights(rules);

  const Rule* wanted = nullptr;
  for (const auto& rule : rules) {
    if (name.starts_with(rule.prefix) &&
        (wanted == nullptr || rule.prefix.size() > wanted->prefix.size())) {
      wanted = &rule;
    }
  }

  const auto* found = rights.rule_for(name);
  RC_ASSERT((found == nullptr) == (wanted == nullptr));
  // Evaluated before RC_ASSERT, which does not short-circuit the operands of `||`.
  const bool is_same = found == nullptr || *found == *wanted;
  RC_ASSERT(is_same);
}

// An iteration that skips unreadable names must neither miss a readable name nor move backwards.
RC_GTEST_PROP(Rights, a_walk_that_skips_sees_every_name_that_may_be_read,
              (const std::vector<std::pair<std::vector<int>, unsigned>>& drawn,
               const std::vector<std::vector<int>>& drawn_names)) {
  const Rights rights(any_rules(drawn));
  std::set<std::string> names;
  for (const auto& letters : drawn_names) {
    names.insert(any_name(letters));
  }

  std::set<std::string> wanted;
  for (const auto& name : names) {
    if (rights.may(Verb::read, name)) {
      wanted.insert(name);
    }
  }
  std::set<std::string> seen;
  for (auto it = names.begin(); it != names.end();) {
    if (rights.may(Verb::read, *it)) {
      seen.insert(*it++);
      continue;
    }
    const auto next = rights.skip(*it);
    const bool goes_on = !next || *next > *it;
    RC_ASSERT(goes_on);
    it = next ? names.lower_bound(*next) : names.end();
  }

  RC_ASSERT(seen == wanted);
}

TEST(Access, an_unauthenticated_client_has_no_rights_and_without_users_all_are_granted) {
  const Access anonymous(std::make_shared<const Policy>(), nullptr);

  EXPECT_FALSE(anonymous.is_authenticated());
  EXPECT_FALSE(anonymous.may(Verb::read, "a"));
  EXPECT_TRUE(Access::unrestricted().may_globally(Verb::admin));
}

TEST(Access, a_denial_names_the_user_the_action_and_the_rule) {
  auto rules = std::make_shared<const Policy>(*Policy::make(
      {{.name = "alice", .tokens = {digest_of("t")}, .rules = {{"a/", Level::read}}}}));
  const Access alice(rules, rules->find_by_token(digest_of("t")));

  EXPECT_EQ(alice.denial(Verb::lock, "a/x").detail,
            "alice may not lock \"a/x\": the rule for prefix \"a/\" grants read");
  EXPECT_EQ(alice.denial(Verb::read, "b").detail,
            "alice may not read \"b\": no rule of the user has a prefix of this name");
  EXPECT_EQ(alice.denial(Verb::read, "b").code, Errc::permission_denied);
}

TEST(Access, the_client_prefix_of_a_lease_identifies_its_user) {
  const User alice{.name = "alice"};

  EXPECT_TRUE(is_owned_by(alice, qualified_client(alice, "host 1")));
  EXPECT_TRUE(is_owned_by(alice, "alice/"));
  EXPECT_FALSE(is_owned_by(alice, "alice"));
  EXPECT_FALSE(is_owned_by(alice, "alicex/host"));
  EXPECT_FALSE(is_owned_by(alice, "bob/alice/"));
}

using namespace std::chrono_literals;

TEST(DenialLogLimiter, each_principal_and_action_is_logged_once_per_minute) {
  DenialLogLimiter limiter;
  const auto begin = DenialLogLimiter::Clock::time_point{} + 1h;

  EXPECT_TRUE(limiter.admit("alice", "lock", begin));
  EXPECT_FALSE(limiter.admit("alice", "lock", begin + 1s));
  EXPECT_TRUE(limiter.admit("alice", "read", begin + 1s));
  EXPECT_TRUE(limiter.admit("bob", "lock", begin + 1s));
  EXPECT_FALSE(limiter.admit("alice", "lock", begin + 59s));
  EXPECT_EQ(limiter.admit("alice", "lock", begin + 61s)->suppressed, 2U);
}

// Regression: an HTTP peer has no port, so "::1" was cut to ":", and all IPv6 hosts shared a limit.
TEST(DenialLogLimiter, unauthenticated_clients_are_counted_by_host) {
  EXPECT_EQ(host_of("127.0.0.1:5000"), "127.0.0.1");
  EXPECT_EQ(host_of("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(host_of("[fe80::1]:5000"), "[fe80::1]");
  EXPECT_EQ(host_of("[fe80::1]"), "[fe80::1]");
  EXPECT_EQ(host_of("fe80::1"), "fe80::1");
  EXPECT_EQ(host_of("::1"), "::1");
  EXPECT_EQ(host_of(""), "");
}

// A client with many names must fill neither the memory nor the log.
TEST(DenialLogLimiter, a_flood_of_unauthenticated_clients_shares_one_entry) {
  DenialLogLimiter limiter;
  const auto now = DenialLogLimiter::Clock::time_point{} + 1h;

  std::size_t lines = 0;
  for (int n = 0; n < 10'000; ++n) {
    lines += limiter.admit("10.0." + std::to_string(n), "identify", now) ? 1 : 0;
  }

  EXPECT_LE(lines, DenialLogLimiter::entries_max + 1);
  EXPECT_EQ(limiter.admit("new", "identify", now + 61s)->principal, "new");
}

}  // namespace
}  // namespace tenure::server::auth
