#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "server/auth/token.hpp"
#include "server/http/server.hpp"
#include "support/http/client.hpp"
#include "support/store/memory_store.hpp"

namespace tenure::test {

[[nodiscard]] inline core::Item lock(std::string name, LockMode mode = LockMode::exclusive) {
  return {.name = std::move(name), .claim = core::Whole{.mode = mode}};
}

/// Text of a field of a flat JSON object.
[[nodiscard]] inline std::string field(const std::string& answer, const std::string& name) {
  const auto key = '"' + name + "\":\"";
  const auto begin = answer.find(key);
  if (begin == std::string::npos) {
    ADD_FAILURE() << name << " is not in\n" << answer;
    return "";
  }
  const auto from = begin + key.size();
  return answer.substr(from, answer.find('"', from) - from);
}

/// Header field with a token; empty without one.
[[nodiscard]] inline std::string bearing(std::string_view token) {
  return token.empty() ? "" : "Authorization: Bearer " + std::string(token) + "\r\n";
}

/// HTTP server with an in-memory store, for one test.
class HttpService {
 public:
  explicit HttpService(server::http::ServerOptions options = {},
                       const MemoryStore::Options& store_options = {})
      : store(store_options), http(store, metrics, on_any_port(std::move(options))) {
    store.listen(metrics);
    store.start();
    const auto bound = http.start();
    EXPECT_TRUE(bound);
    port = bound.value_or(0);
  }
  ~HttpService() {
    http.stop();
    store.stop();
  }
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  [[nodiscard]] std::string get(std::string_view target, std::string_view fields = "") const {
    return http_get(port, target, fields);
  }

  [[nodiscard]] std::string post(std::string_view target, std::string_view body = "") const {
    return http_post(port, target, body);
  }

  void grant_lease(std::uint64_t id, core::ClusterTime ttl = std::chrono::seconds(30)) {
    EXPECT_TRUE(store.ask(core::GrantLease{.id = core::LeaseId{id},
                                           .ttl = ttl,
                                           .client = "client " + std::to_string(id),
                                           .address = "10.0.0.1:5"}));
  }
  core::Outcome acquire(std::uint64_t lease, std::vector<core::Item> items,
                        std::string metadata = {}) {
    const auto decided = store.ask(core::Acquire{.lease = core::LeaseId{lease},
                                                 .request = core::RequestId{++last_request},
                                                 .items = std::move(items),
                                                 .owner = "owner " + std::to_string(lease),
                                                 .metadata = std::move(metadata)});
    return decided ? decided->outcome : core::Outcome{};
  }
  void release(std::uint64_t lease, std::string name) {
    EXPECT_TRUE(store.ask(
        core::Release{.lease = core::LeaseId{lease}, .what = core::Target{std::move(name), {}}}));
  }

  server::Metrics metrics{"1.2.3"};
  MemoryStore store;
  server::http::Server http;
  std::uint16_t port = 0;
  std::uint64_t last_request = 0;

 private:
  static server::http::ServerOptions on_any_port(server::http::ServerOptions options) {
    options.address = {.host = "127.0.0.1", .port = 0};
    options.facts.version = "1.2.3";
    options.secret = server::auth::digest_of(http_secret);
    return options;
  }
};

}  // namespace tenure::test
