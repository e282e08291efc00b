#include "server/tls/certificates.hpp"

#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "support/rpc/certificates.hpp"

namespace tenure::server {
namespace {

using namespace std::chrono_literals;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Certificates, the_first_expiry_of_a_file_with_several_counts) {
  test::Authority authority;
  const auto soon = text_of(authority.sign({.name = "soon", .hours = 10}).file);
  const auto late = text_of(authority.sign({.name = "late", .hours = 100}).file);
  const auto now = std::chrono::system_clock::now();

  const auto first = first_expiry(late + soon);

  ASSERT_TRUE(first.has_value()) << first.error().detail;
  EXPECT_GT(*first, now + 9h);
  EXPECT_LT(*first, now + 11h);
  EXPECT_EQ(first_expiry("no certificate").error(), Errc::invalid_argument);
  EXPECT_EQ(first_expiry("").error(), Errc::invalid_argument);
}

// Otherwise one port would have the new certificate and another the old one.
TEST(Certificates, a_reload_installs_all_groups_or_none) {
  test::Authority authority;
  const auto file = authority.sign({}).file;
  std::map<std::string, int, std::less<>> observed;
  Certificates certificates(
      [&](std::string_view kind, std::chrono::sys_seconds) { ++observed[std::string(kind)]; });
  int installed = 0;
  bool is_good = false;
  certificates.add({.files = {{.kind = "server", .path = file}}, .prepare = [&] {
                      return Result<Certificates::Install>([&] { ++installed; });
                    }});
  certificates.add({.files = {{.kind = "peer", .path = file}},
                    .prepare = [&]() -> Result<Certificates::Install> {
                      if (!is_good) {
                        return fail(Errc::invalid_argument, "a key of another certificate");
                      }
                      return [&] { ++installed; };
                    }});
  EXPECT_EQ(observed["server"] + observed["peer"], 2);

  EXPECT_FALSE(certificates.reload().has_value());
  EXPECT_EQ(installed, 0);

  is_good = true;
  EXPECT_TRUE(certificates.reload().has_value());
  EXPECT_EQ(installed, 2);
  EXPECT_EQ(observed["peer"], 2);
}

}  // namespace
}  // namespace tenure::server
