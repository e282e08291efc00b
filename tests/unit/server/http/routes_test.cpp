#include <regex>
#include <set>
#include <string>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "server/http/assets.hpp"
#include "server/http/router.hpp"
#include "support/http/service.hpp"

namespace tenure::test {
namespace {

using server::http::Method;
using server::http::Router;

// Catches a route without documentation, and documentation of a route that does not exist.
TEST(HttpRoutes, the_openapi_file_contains_exactly_the_routes) {
  std::set<std::string> served;
  for (const auto& route : Router::routes()) {
    const bool has_part = route.path.size() > 1 && route.path.ends_with('/');
    served.insert((route.method == Method::post ? "post " : "get ") + std::string(route.path) +
                  (has_part ? "{}" : "") + std::string(route.suffix));
  }
  std::set<std::string> described;
  const auto text = server::http::openapi_document();
  const auto document = boost::json::parse({text.data(), text.size()});
  for (const auto& path : document.at("paths").as_object()) {
    for (const auto& operation : path.value().as_object()) {
      described.insert(std::string(operation.key()) + ' ' +
                       std::regex_replace(std::string(path.key()), std::regex("\\{\\w+\\}"), "{}"));
    }
  }

  EXPECT_EQ(served, described);
}

TEST(HttpRoutes, names_can_contain_slashes_and_colons_and_actions_require_post) {
  HttpService service;
  service.grant_lease(7);
  service.acquire(7, {{.name = "a/b:acquire"}});

  EXPECT_EQ(status_of(service.get("/v1/locks/a/b:acquire")), 200);
  EXPECT_EQ(status_of(service.post("/v1/locks/a/b:acquire:acquire")), 409);
  EXPECT_EQ(status_of(service.post("/v1/locks/a/b:acquire")), 200);
  EXPECT_EQ(status_of(service.post("/v1/locks/:acquire")), 405);
  EXPECT_EQ(status_of(service.post("/v1/locks/a")), 405);
  EXPECT_EQ(status_of(service.get("/v1/locks/")), 404);
}

TEST(HttpRoutes, a_refused_method_lists_the_allowed_ones) {
  HttpService service;

  const auto only_post = service.get("/v1/tokens:check");
  EXPECT_EQ(status_of(only_post), 405);
  EXPECT_NE(only_post.find("Allow: POST\r\n"), std::string::npos) << only_post;
  EXPECT_EQ(Router::allowed("/v1/leases"), "GET, HEAD, POST");
  EXPECT_EQ(Router::allowed("/v1/locks"), "GET, HEAD");
}

}  // namespace
}  // namespace tenure::test
