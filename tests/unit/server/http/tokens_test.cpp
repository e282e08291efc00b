#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "support/http/service.hpp"

namespace tenure::test {
namespace {

std::string token_of(const core::Outcome& outcome) {
  const auto* granted = std::get_if<core::Granted>(&outcome);
  return granted == nullptr ? "none" : std::to_string(granted->token.get());
}

std::string check(const HttpService& service, const std::string& name, const std::string& token) {
  return service.post("/v1/tokens:check", R"({"name":")" + name + R"(","token":")" + token + "\"}");
}

#define EXPECT_HAS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (part) << "\nis not in\n" << (text)

// 002.054: a storage system that cannot store the highest token checks whether a token is held.
TEST(HttpTokens, a_token_is_held_until_its_hold_ends_and_then_refused) {
  HttpService service;
  service.grant_lease(7);
  service.grant_lease(8);
  const auto first = token_of(service.acquire(7, {lock("a/b")}));

  const auto held = check(service, "a/b", first);
  EXPECT_EQ(status_of(held), 200);
  EXPECT_HAS(held, R"({"verdict":"held","newest_token":")" + first + R"(","owner":"owner 7")");

  service.release(7, "a/b");
  EXPECT_HAS(check(service, "a/b", first), R"({"verdict":"ended","newest_token":"0")");

  const auto second = token_of(service.acquire(8, {lock("a/b")}));
  EXPECT_HAS(check(service, "a/b", first),
             R"({"verdict":"superseded","newest_token":")" + second + '"');
  EXPECT_HAS(check(service, "a/b", second), R"("verdict":"held")");
  EXPECT_HAS(service.get("/metrics"), "tenure_fencing_rejected_total 2\n");
}

TEST(HttpTokens, every_current_reader_has_a_valid_token) {
  HttpService service;
  service.grant_lease(7);
  service.grant_lease(8);
  const auto older = token_of(service.acquire(7, {lock("a", LockMode::shared)}));
  const auto newer = token_of(service.acquire(8, {lock("a", LockMode::shared)}));

  EXPECT_HAS(check(service, "a", older), R"({"verdict":"held","newest_token":")" + newer);
  EXPECT_HAS(check(service, "a", newer), R"("verdict":"held")");
}

// A token of another lock or an invented one must not be accepted for this lock.
TEST(HttpTokens, a_token_of_another_lock_and_one_of_the_future_are_refused) {
  HttpService service;
  service.grant_lease(7);
  const auto other = token_of(service.acquire(7, {lock("other")}));

  EXPECT_HAS(check(service, "a", other), R"("verdict":"ended")");
  EXPECT_HAS(check(service, "a", "18446744073709551615"), R"("verdict":"never_given")");
}

TEST(HttpTokens, an_invalid_token_check_is_refused_with_its_error) {
  HttpService service;
  const auto answer = [&](std::string_view body) { return service.post("/v1/tokens:check", body); };

  for (const auto* nonsense : {"[]", "{", "{\"name\":\"a\",\"name\":", "7", "{\"name\":[1]}",
                               "{\"name\":{\"a\":{}}}", "{\"name\":\"\\xff\"}"}) {
    EXPECT_EQ(status_of(answer(nonsense)), 400) << nonsense;
  }
  EXPECT_HAS(answer("{}"), "name: required");
  EXPECT_HAS(answer(R"({"name":"a"})"), "token: required");
  EXPECT_HAS(answer(R"({"name":1,"token":2})"), "name: expected a string");
  EXPECT_HAS(answer(R"({"name":"a","token":"x"})"), "token: expected a number");
  EXPECT_HAS(answer(R"({"name":"a","token":-1})"),
             "token: expected a string, a whole number from 0");
  EXPECT_HAS(answer(R"({"name":"a","token":1,"tokn":2})"), "tokn: unknown field");
  EXPECT_EQ(status_of(answer(R"({"name":"a","token":1})")), 200);
}

TEST(HttpTokens, a_follower_rejects_a_token_check) {
  HttpService service;
  service.store.lead(false);

  EXPECT_EQ(status_of(check(service, "a", "1")), 503);
}

// A form of a foreign page can send any body, but not this header.
TEST(HttpTokens, a_cross_site_request_is_refused) {
  HttpService service;

  EXPECT_EQ(status_of(http_post(service.port, "/v1/tokens:check", "{}", "")), 403);
}

}  // namespace
}  // namespace tenure::test
