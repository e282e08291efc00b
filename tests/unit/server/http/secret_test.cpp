#include "server/http/secret.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/raft/folder.hpp"

namespace tenure::test {
namespace {

using server::auth::digest_of;
using server::http::open_secret;

std::string line_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

TEST(HttpSecret, a_missing_file_is_created_for_its_owner_alone_and_kept) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "http_secret";

  const auto first = open_secret(folder.path());

  ASSERT_TRUE(first) << first.error().detail;
  struct stat facts{};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  // "tenure_" and 256 bits.
  EXPECT_EQ(line_of(file).size(), 7U + 64U);
  EXPECT_EQ(*first, digest_of(line_of(file)));
  EXPECT_EQ(open_secret(folder.path()).value(), *first);
  const TemporaryFolder other;
  EXPECT_NE(open_secret(other.path()).value(), *first);
}

TEST(HttpSecret, a_file_that_other_users_may_access_is_refused) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "http_secret";
  ASSERT_TRUE(open_secret(folder.path()));

  for (const mode_t mode : {0640U, 0604U, 0620U, 0601U}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    const auto opened = open_secret(folder.path());
    ASSERT_FALSE(opened) << mode;
    EXPECT_EQ(opened.error(), Errc::invalid_argument);
    EXPECT_NE(opened.error().detail.find("0600"), std::string::npos) << opened.error().detail;
  }
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  EXPECT_TRUE(open_secret(folder.path()));
}

// Every request with an empty "Bearer " token would match an empty secret.
TEST(HttpSecret, a_text_that_is_too_short_or_too_long_is_refused) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "http_secret";
  for (const auto& text : {std::string(), std::string("\n"), std::string(31, 'x'),
                           std::string(257, 'x'), std::string(10'000, 'x')}) {
    std::ofstream(file) << text;
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
    EXPECT_FALSE(open_secret(folder.path())) << text.size();
  }
  std::ofstream(file) << std::string(32, 'x') << '\n';
  EXPECT_EQ(open_secret(folder.path()).value(), digest_of(std::string(32, 'x')));
}

TEST(HttpSecret, a_symbolic_link_or_a_folder_of_that_name_is_refused) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "http_secret";
  const TemporaryFolder other;
  ASSERT_TRUE(open_secret(other.path()));
  std::filesystem::create_symlink(other.path() / "http_secret", file);
  EXPECT_FALSE(open_secret(folder.path()));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_FALSE(open_secret(folder.path()));
}

}  // namespace
}  // namespace tenure::test
