#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/raft/file.hpp"
#include "server/raft/folder.hpp"
#include "server/raft/snapshot_file.hpp"
#include "support/raft/folder.hpp"

namespace tenure::server::raft {
namespace {

using test::content_of;
using test::TemporaryFolder;
using test::write_content;

bool mentions(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

const SnapshotMark mark{.index = Index{10},
                        .term = Term{3},
                        .configuration_index = Index{1},
                        .configuration = "members"};

TEST(RaftSnapshotFile, a_newer_snapshot_is_never_replaced_by_an_older_one) {
  const TemporaryFolder folder;
  SnapshotFile file(folder / "snapshot");
  EXPECT_FALSE(file.read().value().has_value());
  EXPECT_EQ(file.bytes(), 0U);

  ASSERT_TRUE(file.write(mark, "the body").has_value());
  ASSERT_TRUE(file.write({.index = Index{9}}, "older").has_value());

  const auto snapshot = file.read().value();
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->mark, mark);
  EXPECT_EQ(*snapshot->body, "the body");
  EXPECT_GT(file.bytes(), 8U);
}

// The file is written in pieces of a megabyte, so that other writes can interleave.
TEST(RaftSnapshotFile, a_large_snapshot_is_read_back_whole) {
  const TemporaryFolder folder;
  std::string body((std::size_t{3} << 20) + 5, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) {
    body[i] = static_cast<char>(i * 2'654'435'761U >> 20U);
  }
  SnapshotFile file(folder.path() / "snapshot");

  ASSERT_TRUE(file.write(mark, body).has_value());
  const auto read = file.read();

  ASSERT_TRUE(read.has_value()) << read.error().detail;
  ASSERT_TRUE(read->has_value());
  EXPECT_TRUE(*(**read).body == body);
}

// The kernel reports a writeback error once: a later sync of the same file would succeed.
TEST(RaftFile, a_failed_writeback_is_reported) {
  const TemporaryFolder folder;
  auto file = File::open(folder / "file", File::Mode::create).value();
  ASSERT_TRUE(file.write_at(0, "part").has_value());
  EXPECT_TRUE(file.write_back(0, 4).has_value());
  file.close();

  const auto failed = file.write_back(0, 4);

  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Errc::unavailable);
  EXPECT_TRUE(mentions(failed.error().detail, (folder / "file").string())) << failed.error().detail;
}

TEST(RaftSnapshotFile, a_snapshot_file_with_a_changed_or_missing_byte_is_refused_by_name) {
  const TemporaryFolder folder;
  SnapshotFile file(folder / "snapshot");
  ASSERT_TRUE(file.write(mark, "the body").has_value());
  const auto whole = content_of(folder / "snapshot");

  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    write_content(folder / "snapshot", changed);
    const auto read = file.read();
    ASSERT_FALSE(read.has_value()) << at;
    EXPECT_EQ(read.error().code, Errc::invalid_argument);
    EXPECT_TRUE(mentions(read.error().detail, (folder / "snapshot").string()));

    write_content(folder / "snapshot", whole.substr(0, at));
    EXPECT_FALSE(file.read().has_value()) << at;
  }
}

TEST(RaftSnapshotFile, a_snapshot_file_of_another_version_is_refused_by_name) {
  const TemporaryFolder folder;
  SnapshotFile file(folder / "snapshot");
  ASSERT_TRUE(file.write(mark, "the body").has_value());
  auto newer = content_of(folder / "snapshot");
  newer[8] = 2;
  write_content(folder / "snapshot", newer);

  EXPECT_TRUE(mentions(file.read().error().detail, "version is 2"));
}

TEST(RaftFolder, a_folder_keeps_its_identity) {
  const TemporaryFolder folder;
  ClusterId cluster;
  {
    const auto made = Folder::open(folder / "a", {.member = MemberId{3}});
    ASSERT_TRUE(made.has_value()) << made.error().detail;
    cluster = made->cluster();
    EXPECT_NE(cluster, ClusterId{});
  }

  const auto again = Folder::open(folder / "a", {});

  ASSERT_TRUE(again.has_value()) << again.error().detail;
  EXPECT_EQ(again->cluster(), cluster);
  EXPECT_EQ(again->member(), MemberId{3});
  EXPECT_NE(Folder::open(folder / "b", {})->cluster(), cluster);
}

TEST(RaftFolder, every_new_folder_is_another_incarnation) {
  const TemporaryFolder folder;
  const auto incarnation_of = [&](const char* name) {
    const auto opened = Folder::open(folder / name, {ClusterId{7}, MemberId{1}}, origin_of_nothing);
    EXPECT_TRUE(opened.has_value());
    EXPECT_EQ(opened->origin(), origin_of_nothing);
    return opened->incarnation();
  };
  const auto first = incarnation_of("a");
  EXPECT_NE(first, Incarnation{});
  EXPECT_EQ(incarnation_of("a"), first);
  EXPECT_NE(incarnation_of("b"), first);

  std::filesystem::remove_all(folder / "a");

  EXPECT_NE(incarnation_of("a"), first);
}

TEST(RaftFolder, a_folder_of_an_earlier_version_gets_an_incarnation_and_keeps_it) {
  const TemporaryFolder folder;
  write_content(folder / "identity", "tenure 1\ncluster 00000000000000ab\nmember 3\n");
  Incarnation incarnation;
  {
    const auto opened = Folder::open(folder.path(), {}, origin_of_nothing);
    ASSERT_TRUE(opened.has_value()) << opened.error().detail;
    EXPECT_EQ(opened->cluster(), ClusterId{0xAB});
    EXPECT_EQ(opened->origin(), Origin{}) << "unknown origin";
    incarnation = opened->incarnation();
    EXPECT_NE(incarnation, Incarnation{});
  }
  EXPECT_EQ(Folder::open(folder.path(), {})->incarnation(), incarnation);
}

// With a new incarnation, the other members would refuse this one.
TEST(RaftFolder, an_incarnation_that_cannot_be_read_is_refused) {
  const TemporaryFolder folder;
  for (const auto* damaged : {"incarnation", "incarnation x\norigin 1", "incarnation 5\norigin"}) {
    write_content(folder / "identity",
                  std::string("tenure 1\ncluster 00000000000000ab\nmember 3\n") + damaged);

    const auto opened = Folder::open(folder.path(), {});

    ASSERT_FALSE(opened.has_value()) << damaged;
    EXPECT_TRUE(opened.error().detail.contains("identity"));
  }
}

// Catches a generated cluster id that node.cluster_id would reject as too large.
TEST(RaftFolder, a_random_cluster_has_an_id_that_the_configuration_takes) {
  const TemporaryFolder folder;
  for (int i = 0; i < 32; ++i) {
    const auto made = Folder::open(folder / std::to_string(i), {});

    ASSERT_TRUE(made.has_value()) << made.error().detail;
    EXPECT_LE(made->cluster().get(),
              static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  }
}

TEST(RaftFolder, a_folder_of_another_cluster_or_member_is_refused) {
  const TemporaryFolder folder;
  {
    ASSERT_TRUE(Folder::open(folder.path(), {ClusterId{0xAB}, MemberId{1}}).has_value());
  }

  const auto cluster = Folder::open(folder.path(), {ClusterId{0xCD}, MemberId{1}});
  const auto member = Folder::open(folder.path(), {ClusterId{0xAB}, MemberId{2}});

  ASSERT_FALSE(cluster.has_value());
  EXPECT_TRUE(mentions(cluster.error().detail, "cluster 171")) << cluster.error().detail;
  ASSERT_FALSE(member.has_value());
  EXPECT_TRUE(mentions(member.error().detail, "member 1")) << member.error().detail;
}

TEST(RaftFolder, a_new_folder_is_accessible_to_its_owner_only) {
  const TemporaryFolder folder;

  ASSERT_TRUE(Folder::open(folder / "new", {}).has_value());

  EXPECT_EQ(std::filesystem::status(folder / "new").permissions(),
            std::filesystem::perms::owner_all);
}

TEST(RaftFolder, a_folder_with_foreign_files_is_refused) {
  const TemporaryFolder folder;
  write_content(folder / "thesis.txt", "years of work");

  const auto opened = Folder::open(folder.path(), {});

  ASSERT_FALSE(opened.has_value());
  EXPECT_TRUE(mentions(opened.error().detail, "thesis.txt")) << opened.error().detail;
  EXPECT_FALSE(std::filesystem::exists(folder / "LOCK")) << "nothing was written";
}

TEST(RaftFolder, a_folder_of_an_unknown_format_is_refused_by_name) {
  const TemporaryFolder folder;
  write_content(folder / "identity", "tenure 2\ncluster 1\nmember 1\n");

  const auto opened = Folder::open(folder.path(), {});

  ASSERT_FALSE(opened.has_value());
  EXPECT_TRUE(mentions(opened.error().detail, "format 2")) << opened.error().detail;
}

TEST(RaftFolder, a_folder_is_locked_by_one_process) {
  const TemporaryFolder folder;
  const auto ours = Folder::open(folder.path(), {});
  ASSERT_TRUE(ours.has_value());

  const auto child = ::fork();
  if (child == 0) {
    const auto theirs = Folder::open(folder.path(), {});
    ::_exit(!theirs.has_value() && theirs.error() == Errc::would_block ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_EQ(status, 0) << "a second process got the same folder";
}

}  // namespace
}  // namespace tenure::server::raft
