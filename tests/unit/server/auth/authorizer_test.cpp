#include "server/auth/authorizer.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "server/auth/leases.hpp"
#include "server/http/login_sessions.hpp"
#include "support/raft/folder.hpp"

namespace tenure::server::auth {
namespace {

Result<Policy> read(const std::string& text) {
  return parse_policy(text, "users.toml");
}

std::string error_of(const std::string& text) {
  const auto policy = read(text);
  return policy ? "" : policy.error().detail;
}

const std::string some_digest = print(digest_of("secret"));

TEST(Token, a_new_token_is_256_random_bits_and_only_its_digest_is_stored) {
  const auto token = make_token();
  const auto other = make_token();

  EXPECT_EQ(token.size(), 7U + 64U);
  EXPECT_TRUE(token.starts_with("tenure_"));
  EXPECT_NE(token, other);
  EXPECT_EQ(digest_from(print(digest_of(token))), digest_of(token));
  EXPECT_EQ(print(digest_of(token)).find(token.substr(7)), std::string::npos);
}

TEST(Token, the_digest_is_sha_256) {
  EXPECT_EQ(print(digest_of("abc")),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_FALSE(digest_from("sha256:ba78"));
  EXPECT_FALSE(digest_from(std::string(71, 'a')));
  EXPECT_FALSE(digest_from("sha256:" + std::string(64, 'g')));
}

TEST(Token, the_bearer_scheme_is_case_insensitive) {
  EXPECT_EQ(bearer_token("Bearer abc"), "abc");
  EXPECT_EQ(bearer_token("bearer  abc"), "abc");
  EXPECT_FALSE(bearer_token("Basic abc"));
  EXPECT_FALSE(bearer_token("Bearer"));
  EXPECT_FALSE(bearer_token(""));
}

TEST(Policy, a_file_defines_users_credentials_and_rights) {
  const auto policy = read(
      "[users.alice]\n"
      "tokens = [\"" +
      some_digest +
      "\"]\n"
      "certificates = [\"alice.example\"]\n"
      "rights = { \"\" = \"read\", \"app/\" = \"lock\" }\n"
      "[users.\"ops@example\"]\n"
      "certificates = [\"ops\"]\n"
      "[users.\"ops@example\".rights]\n"
      "\"\" = \"admin\"\n");

  ASSERT_TRUE(policy) << policy.error().detail;
  const auto* alice = policy->find_by_token(digest_of("secret"));
  ASSERT_NE(alice, nullptr);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_TRUE(alice->rights.may(Verb::lock, "app/x"));
  EXPECT_FALSE(alice->rights.may(Verb::lock, "x"));
  EXPECT_EQ(policy->find_by_token(digest_of("another")), nullptr);
  EXPECT_EQ(policy->find_by_certificate(std::vector<std::string>{"x", "alice.example"}), alice);
  EXPECT_EQ(policy->find_by_certificate(std::vector<std::string>{"ops"})->name, "ops@example");
  // The certificate has the names of two users: the principal is ambiguous.
  EXPECT_EQ(policy->find_by_certificate(std::vector<std::string>{"ops", "alice.example"}), nullptr);
  EXPECT_EQ(policy->find_by_certificate(std::vector<std::string>{}), nullptr);
}

TEST(Policy, all_errors_are_reported_with_their_positions) {
  const auto text = error_of(
      "[users.alice]\n"
      "tokens = [\"sha256:12\"]\n"
      "rights = { \"a\" = \"write\" }\n"
      "password = \"x\"\n"
      "[users.\"a/b\"]\n"
      "[groups]\n");

  EXPECT_NE(text.find("users.toml:2:"), std::string::npos) << text;
  EXPECT_NE(text.find("users.toml:3:"), std::string::npos) << text;
  EXPECT_NE(text.find("unknown field password"), std::string::npos) << text;
  EXPECT_NE(text.find("users.toml:5:"), std::string::npos) << text;
  EXPECT_NE(text.find("only tables [users.NAME]"), std::string::npos) << text;
}

// An operator may put the token itself into the file by mistake. The log must not repeat it.
TEST(Policy, an_error_does_not_repeat_a_token) {
  const auto token = make_token();

  const auto text = error_of("[users.alice]\ntokens = [\"" + token + "\"]\n");

  EXPECT_NE(text, "");
  EXPECT_EQ(text.find(token), std::string::npos);
}

TEST(Policy, an_invalid_file_is_refused) {
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of("not toml"), "");
  EXPECT_NE(error_of("[users.alice]\nrights = { \"\" = \"read\" }\n"), "");
  EXPECT_NE(error_of("[users.a]\ntokens = [\"" + some_digest + "\"]\n[users.b]\ntokens = [\"" +
                     some_digest + "\"]\n"),
            "");
  EXPECT_NE(error_of("[users.a]\ncertificates = [\"x\"]\n[users.b]\ncertificates = [\"x\"]\n"), "");
}

Policy one(const std::string& name, std::vector<Rule> rules) {
  return *Policy::make(
      {{.name = name, .tokens = {digest_of("secret")}, .rules = std::move(rules)}});
}

TEST(Authorizer, a_token_identifies_the_principal) {
  Authorizer authorizer(one("alice", {{"a/", Level::lock}}));

  const auto alice =
      authorizer.authenticate(Authorizer::credentials_from("Bearer secret"), "10.0.0.1:5");
  EXPECT_FALSE(alice->authorize(Permission::authenticated));
  EXPECT_FALSE(alice->authorize(Permission::lock_any_name));
  EXPECT_FALSE(alice->authorize(Verb::lock, "a/x"));
  EXPECT_EQ(alice->authorize(Verb::lock, "b/x")->kind, AccessDenied::Kind::forbidden);
  EXPECT_EQ(alice->authorize(Permission::admin_global)->kind, AccessDenied::Kind::forbidden);
  EXPECT_EQ(alice->authorize(Permission::read_global)->kind, AccessDenied::Kind::forbidden);
}

TEST(Authorizer, missing_or_wrong_credentials_are_reported_with_a_remedy) {
  Authorizer authorizer(one("alice", {{"", Level::admin}}));

  for (const auto* field : {"", "Bearer wrong", "Basic c2VjcmV0", "secret2"}) {
    const auto principal =
        authorizer.authenticate(Authorizer::credentials_from(field), "10.0.0.1:5");
    const auto denial = principal->authorize(Permission::authenticated);
    ASSERT_TRUE(denial) << field;
    EXPECT_EQ(denial->kind, AccessDenied::Kind::unauthenticated);
    EXPECT_NE(denial->error.detail.find("authorization: Bearer"), std::string::npos);
    EXPECT_EQ(denial->error.detail.find("secret"), std::string::npos);
    EXPECT_FALSE(principal->authorize(Permission::none));
  }
}

TEST(Authorizer, a_new_policy_applies_to_existing_principals) {
  Authorizer authorizer(one("alice", {{"a/", Level::lock}}));
  const auto alice = authorizer.authenticate(Authorizer::credentials_from("Bearer secret"), "");
  ASSERT_FALSE(alice->authorize(Verb::lock, "a/x"));

  authorizer.replace(one("alice", {{"a/", Level::read}}));
  EXPECT_TRUE(alice->authorize(Verb::lock, "a/x"));
  EXPECT_FALSE(alice->authorize(Verb::read, "a/x"));

  authorizer.replace(*Policy::make(
      {{.name = "bob", .tokens = {digest_of("other")}, .rules = {{"", Level::admin}}}}));
  EXPECT_EQ(alice->authorize(Permission::authenticated)->kind, AccessDenied::Kind::unauthenticated);
}

TEST(Authorizer, a_broken_file_keeps_the_old_rights) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "users.toml";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  const std::string head = "[users.alice]\ntokens = [\"" + some_digest + "\"]\n";
  write(head + "rights = { \"a/\" = \"lock\" }\n");
  auto authorizer = Authorizer::open(file);
  ASSERT_TRUE(authorizer) << authorizer.error().detail;
  const auto alice = (*authorizer)->authenticate(Authorizer::credentials_from("Bearer secret"), "");

  write(head + "rights = { \"a/\" = \"everything\" }\n");
  EXPECT_FALSE((*authorizer)->reload());
  EXPECT_FALSE(alice->authorize(Verb::lock, "a/x"));

  std::filesystem::remove(file);
  EXPECT_FALSE((*authorizer)->reload());
  EXPECT_FALSE(alice->authorize(Verb::lock, "a/x"));

  write(head + "rights = { \"b/\" = \"lock\" }\n");
  EXPECT_EQ((*authorizer)->reload(), 1U);
  EXPECT_TRUE(alice->authorize(Verb::lock, "a/x"));
  EXPECT_FALSE(alice->authorize(Verb::lock, "b/x"));
}

TEST(Authorizer, an_invalid_file_fails_to_open) {
  const test::TemporaryFolder folder;

  const auto authorizer = Authorizer::open(folder.path() / "nothing.toml");

  ASSERT_FALSE(authorizer);
  EXPECT_NE(authorizer.error().detail.find("nothing.toml"), std::string::npos);
}

TEST(Authorizer, every_denial_is_counted_by_its_verb) {
  Authorizer authorizer(one("alice", {{"a/", Level::lock}}));
  std::vector<std::string> counted;
  authorizer.on_denied([&](std::string_view verb) { counted.emplace_back(verb); });
  const auto alice = authorizer.authenticate(Authorizer::credentials_from("Bearer secret"), "");

  (void)alice->authorize(Verb::lock, "b");
  (void)alice->authorize(Verb::lock, "b");
  (void)alice->is_foreign("bob/x", 7);
  (void)authorizer.authenticate({}, "")->authorize(Permission::authenticated);

  EXPECT_EQ(counted, (std::vector<std::string>{"lock", "lock", "lease", "identify"}));
}

TEST(Authorizer, leases_of_other_users_are_foreign_except_to_an_admin) {
  Authorizer authorizer(
      *Policy::make({{.name = "alice", .tokens = {digest_of("a")}, .rules = {{"", Level::lock}}},
                     {.name = "ops", .tokens = {digest_of("o")}, .rules = {{"", Level::admin}}}}));
  const auto alice = authorizer.authenticate(Authorizer::credentials_from("Bearer a"), "");
  const auto ops = authorizer.authenticate(Authorizer::credentials_from("Bearer o"), "");

  EXPECT_FALSE(alice->is_foreign("alice/host", 1));
  EXPECT_TRUE(alice->is_foreign("bob/host", 1));
  EXPECT_TRUE(alice->is_foreign("", 1));
  EXPECT_FALSE(ops->is_foreign("bob/host", 1));
}

TEST(Authorizer, leases_are_visible_to_their_user_and_to_global_readers) {
  core::LeaseTable table;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    table.add({.id = core::LeaseId{id},
               .client = id % 2 == 0 ? "alice/host " + std::to_string(id) : "bob/host"});
  }
  auto rules = std::make_shared<const Policy>(
      *Policy::make({{.name = "alice", .tokens = {digest_of("a")}, .rules = {{"x", Level::lock}}},
                     {.name = "eve", .tokens = {digest_of("e")}, .rules = {{"", Level::read}}}}));
  const Access alice(rules, rules->find_by_token(digest_of("a")));
  const Access eve(rules, rules->find_by_token(digest_of("e")));
  const Access anonymous(rules, nullptr);

  const auto mine = visible_leases_after(table, alice, {core::LeaseId{}, 2});
  ASSERT_EQ(mine.leases.size(), 2U);
  EXPECT_EQ(mine.leases.front()->id, core::LeaseId{2});
  EXPECT_EQ(mine.leases.back()->id, core::LeaseId{4});
  EXPECT_TRUE(mine.has_more);
  const auto rest = visible_leases_after(table, alice, {core::LeaseId{4}, 2});
  ASSERT_EQ(rest.leases.size(), 1U);
  EXPECT_FALSE(rest.has_more);
  EXPECT_EQ(visible_leases_after(table, eve, {core::LeaseId{}, 10}).leases.size(), 6U);
  EXPECT_EQ(visible_leases_after(table, anonymous, {core::LeaseId{}, 10}).leases.size(), 0U);
}

// Regression: a user with a million clients blocked the thread of Raft at each listing.
TEST(Authorizer, a_listing_visits_a_limited_number_of_clients) {
  constexpr std::uint64_t clients = 10'001;
  core::LeaseTable table;
  for (std::uint64_t id = 1; id <= clients; ++id) {
    table.add({.id = core::LeaseId{id}, .client = "alice/" + std::to_string(id)});
  }
  auto rules = std::make_shared<const Policy>(*Policy::make(
      {{.name = "alice", .tokens = {digest_of("a")}, .rules = {{"x", Level::lock}}}}));
  const Access alice(rules, rules->find_by_token(digest_of("a")));

  const auto list = visible_leases_after(table, alice, {core::LeaseId{}, clients});

  EXPECT_EQ(list.leases.size(), clients - 1);
  EXPECT_FALSE(list.has_more);
}

using http::LoginSessions;
using namespace std::chrono_literals;

TEST(LoginSessions, a_cookie_stands_for_a_token_until_it_ends) {
  LoginSessions sessions;
  const auto now = LoginSessions::Clock::time_point{} + 1000h;

  const auto secret = sessions.begin(digest_of("a"), now);
  EXPECT_EQ(sessions.find(secret, now), digest_of("a"));
  EXPECT_EQ(sessions.find(secret, now + LoginSessions::life - 1s), digest_of("a"));
  EXPECT_FALSE(sessions.find(secret, now + LoginSessions::life));
  EXPECT_FALSE(sessions.find(secret + "x", now));
  EXPECT_FALSE(sessions.find("", now));

  sessions.end(secret);
  EXPECT_FALSE(sessions.find(secret, now));
}

TEST(LoginSessions, sessions_are_limited_and_the_oldest_is_evicted) {
  LoginSessions sessions;
  auto now = LoginSessions::Clock::time_point{} + 1000h;
  const auto first = sessions.begin(digest_of("a"), now);
  const auto other = sessions.begin(digest_of("b"), now += 1s);

  for (std::size_t n = 0; n < LoginSessions::of_token_max; ++n) {
    (void)sessions.begin(digest_of("a"), now += 1s);
  }
  EXPECT_FALSE(sessions.find(first, now));
  EXPECT_TRUE(sessions.find(other, now));

  for (std::size_t n = 0; n < 2 * LoginSessions::all_max; ++n) {
    (void)sessions.begin(digest_of(std::to_string(n)), now += 1ms);
  }
  EXPECT_EQ(sessions.count(), LoginSessions::all_max);
  EXPECT_FALSE(sessions.find(other, now));
}

}  // namespace
}  // namespace tenure::server::auth
