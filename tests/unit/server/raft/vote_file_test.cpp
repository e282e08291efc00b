#include "server/raft/vote_file.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "support/raft/folder.hpp"

namespace tenure::server::raft {
namespace {

using test::content_of;
using test::write_content;

class RaftVoteFile : public ::testing::Test {
 protected:
  /// Number of used bytes in a slot.
  static constexpr std::size_t used_bytes = 48;
  /// Number of bytes in a slot of an earlier version.
  static constexpr std::size_t former_bytes = 36;

  [[nodiscard]] std::filesystem::path path() const { return folder / "vote"; }
  Result<VoteFile> open() { return VoteFile::open(path(), reports.report()); }
  void save(std::uint64_t term, std::uint64_t voted_for) {
    auto file = open();
    ASSERT_TRUE(file.has_value()) << file.error().detail;
    ASSERT_TRUE(file->save({.term = Term{term}, .voted_for = MemberId{voted_for}}).has_value());
  }
  /// A slot as earlier versions wrote it.
  static std::string former_slot(std::uint64_t number, std::uint64_t term) {
    auto slot = encode_vote_slot(
        {.number = number, .vote = {.term = Term{term}, .voted_for = MemberId{term}}});
    return slot.replace(former_bytes, used_bytes, std::string(used_bytes, '\0'));
  }

  test::TemporaryFolder folder;
  test::Reports reports;
};

TEST_F(RaftVoteFile, a_new_file_has_no_vote) {
  const auto file = open();

  ASSERT_TRUE(file.has_value()) << file.error().detail;
  EXPECT_EQ(file->vote(), Vote{});
}

// The first slot is the one that a crash in the middle of the next save would tear.
TEST_F(RaftVoteFile, a_save_that_a_crash_interrupts_leaves_the_vote_before_it) {
  for (std::uint64_t term = 1; term <= 4; ++term) {
    save(term, term);
    const auto good = content_of(path());

    auto torn = good;
    torn.replace(0, 20, std::string(20, '?'));
    write_content(path(), torn);

    EXPECT_EQ(open()->vote().voted_for, MemberId{term});
    EXPECT_EQ(content_of(path()), good) << "the torn slot is written again";
  }
}

TEST_F(RaftVoteFile, a_save_that_reached_one_slot_counts_and_is_completed) {
  save(1, 1);
  const auto before = content_of(path());
  save(2, 2);
  const auto after = content_of(path());
  write_content(path(), after.substr(0, vote_slot_bytes) + before.substr(vote_slot_bytes));

  EXPECT_EQ(open()->vote().term, Term{2});
  EXPECT_EQ(content_of(path()), after);
  EXPECT_EQ(reports.warnings(), 0U) << reports.all();
}

// One damaged sector must neither lose the vote nor prevent the start.
TEST_F(RaftVoteFile, a_damaged_copy_is_restored_from_the_other_one) {
  save(1, 1);
  save(2, 2);
  const auto whole = content_of(path());

  for (std::size_t slot = 0; slot < vote_slot_count; ++slot) {
    for (std::size_t at = 0; at < used_bytes; ++at) {
      auto damaged = whole;
      damaged[slot * vote_slot_bytes + at] ^= 1;
      write_content(path(), damaged);

      const auto file = open();

      ASSERT_TRUE(file.has_value()) << slot << " " << at << ": " << file.error().detail;
      EXPECT_EQ(file->vote(), (Vote{.term = Term{2}, .voted_for = MemberId{2}}));
      EXPECT_EQ(content_of(path()), whole) << slot << " " << at;
    }
  }
  EXPECT_TRUE(reports.all().contains(path().string())) << reports.all();
  EXPECT_TRUE(reports.all().contains("offset 4096")) << reports.all();
}

TEST_F(RaftVoteFile, a_file_with_two_damaged_copies_is_refused_by_name_and_with_the_remedy) {
  save(1, 1);
  auto damaged = content_of(path());
  damaged[9] ^= 1;
  damaged[vote_slot_bytes + 9] ^= 1;
  for (const auto& content : {damaged, std::string(8192, '?'), std::string()}) {
    write_content(path(), content);

    const auto opened = open();

    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, Errc::invalid_argument);
    EXPECT_TRUE(opened.error().detail.contains(path().string())) << opened.error().detail;
    EXPECT_TRUE(opened.error().detail.contains("backup")) << opened.error().detail;
  }
}

TEST_F(RaftVoteFile, a_file_of_an_earlier_version_is_read_and_mirrored) {
  write_content(path(), former_slot(2, 8) + former_slot(1, 7));

  EXPECT_EQ(open()->vote().term, Term{8});

  const auto content = content_of(path());
  EXPECT_EQ(content.substr(0, vote_slot_bytes), content.substr(vote_slot_bytes));
  EXPECT_EQ(reports.warnings(), 0U) << reports.all();
}

TEST_F(RaftVoteFile, an_unused_file_of_an_earlier_version_is_read) {
  write_content(path(), former_slot(0, 0) + std::string(vote_slot_bytes, '\0'));

  EXPECT_EQ(open()->vote(), Vote{});
}

// Earlier versions wrote the slots alternately: the damaged slot may hold the newest vote.
TEST_F(RaftVoteFile, a_file_of_an_earlier_version_with_a_damaged_slot_is_refused) {
  auto damaged = former_slot(2, 8);
  damaged[9] ^= 1;
  for (const auto& content :
       {damaged + former_slot(1, 7), former_slot(2, 8) + std::string(vote_slot_bytes, '?')}) {
    write_content(path(), content);

    const auto opened = open();

    ASSERT_FALSE(opened.has_value());
    EXPECT_TRUE(opened.error().detail.contains("earlier version")) << opened.error().detail;
  }
}

// Earlier versions read the first 36 bytes of each slot and take the larger number.
TEST_F(RaftVoteFile, a_slot_begins_as_earlier_versions_expect_it) {
  const auto slot =
      encode_vote_slot({.number = 1, .vote = {.term = Term{2}, .voted_for = MemberId{3}}});

  const std::string fields("TENUREV1\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 32);
  EXPECT_EQ(slot.substr(0, 32), fields);
  EXPECT_EQ(slot.size(), vote_slot_bytes);
}

}  // namespace
}  // namespace tenure::server::raft
