#include "backends/schemes.hpp"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace tenure::test {
namespace {

/// Factory that rejects every URL with this detail, so that tests can distinguish factories.
backends::OpenBackend refuse_with(const std::string& detail) {
  return [detail](backends::Url& /*url*/,
                  const ConnectOptions& /*options*/) -> Result<std::unique_ptr<backends::Backend>> {
    return fail(Errc::unavailable, detail);
  };
}

std::string detail_of(const backends::OpenBackend& open) {
  backends::Url url;
  return open(url, {}).error().detail;
}

// A registry that keeps the first factory would ignore the wrappers that tests add.
TEST(BackendSchemes, a_factory_replaces_the_previous_one_and_returns_it) {
  EXPECT_FALSE(backends::add_scheme("schemestest", refuse_with("first")));
  const auto previous = backends::add_scheme("schemestest", refuse_with("second"));
  ASSERT_TRUE(previous);
  EXPECT_EQ(detail_of(previous), "first");
  EXPECT_EQ(detail_of(backends::find_scheme("schemestest").value()), "second");
}

// A user who forgot to link a library has to find its name in the error.
TEST(BackendSchemes, an_unknown_scheme_is_unsupported_and_lists_the_registered_ones) {
  static_cast<void>(backends::add_scheme("schemeslist", refuse_with("")));
  const auto found = backends::find_scheme("nosuchscheme");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::unsupported);
  EXPECT_NE(found.error().detail.find("does not contain nosuchscheme://"), std::string::npos);
  EXPECT_NE(found.error().detail.find("schemeslist://"), std::string::npos);
}

}  // namespace
}  // namespace tenure::test
