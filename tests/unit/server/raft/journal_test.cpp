#include "support/raft/journal.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "server/process/exit_code.hpp"
#include "server/raft/journal.hpp"
#include "support/wait_until.hpp"

namespace tenure::server::raft {
namespace {

using test::content_of;
using test::write_content;
class RaftJournal : public JournalTest {};

TEST_F(RaftJournal, synced_entries_survive_a_restart) {
  {
    auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().detail;
    EXPECT_TRUE(opened->entries.empty());
    append(*opened->journal, Index{1}, {"one", "two"});
    append(*opened->journal, Index{3}, {""});
  }

  const auto opened = open();

  ASSERT_TRUE(opened.has_value()) << opened.error().detail;
  EXPECT_EQ(opened->first, Index{1});
  EXPECT_EQ(payloads(*opened), (Texts{"one", "two", ""}));
  EXPECT_EQ(reports.warnings(), 0U) << reports.all();
}

TEST_F(RaftJournal, a_repeated_index_replaces_the_entries_after_it) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one", "two", "three"});
    append(*opened->journal, Index{2}, {"zwei"});
  }

  EXPECT_EQ(payloads(open().value()), (Texts{"one", "zwei"}));
}

TEST_F(RaftJournal, the_log_continues_in_the_next_segment_and_is_truncated_by_segments) {
  {
    auto opened = open();
    for (std::uint64_t index = 1; index <= 20; ++index) {
      append(*opened->journal, Index{index}, {std::string(500, 'x')});
    }
    EXPECT_GT(opened->journal->bytes(), 5 * 2048U);

    opened->journal->cut(Index{10});
    append(*opened->journal, Index{21}, {"last"});
  }

  const auto opened = open({.index = Index{10}, .term = Term{1}});

  ASSERT_TRUE(opened.has_value()) << opened.error().detail;
  EXPECT_LE(opened->first, Index{11});
  EXPECT_GT(opened->first, Index{1});
  EXPECT_EQ(opened->first.get() + opened->entries.size(), 22U);
}

TEST_F(RaftJournal, an_entry_larger_than_a_segment_gets_one_of_its_own) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"small", std::string(10'000, 'x'), "small"});
  }

  EXPECT_EQ(payloads(open().value())[1].size(), 10'000U);
}

// Prepared segments must not accumulate over restarts.
TEST_F(RaftJournal, a_start_takes_the_segments_that_are_ready_already) {
  for (int start = 0; start < 5; ++start) {
    auto opened = open();
    ASSERT_TRUE(opened.has_value());
  }

  EXPECT_LE(list_segments(folder.path()).size(), 2U);
}

// Every length that a crash can leave of the last record.
TEST_F(RaftJournal, a_torn_last_record_is_cut_off_at_every_length) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
    append(*opened->journal, Index{2}, {"two", "three"});
  }
  const auto whole = content_of(segment(1));
  const auto first_end = segment_header_bytes + record_header_bytes + 3;
  const auto second_end = first_end + record_header_bytes + 3;
  const auto end = second_end + record_header_bytes + 5;

  for (std::size_t length = first_end; length < end; ++length) {
    for (const bool is_short_file : {false, true}) {
      auto torn = whole.substr(0, length);
      torn.resize(is_short_file ? length : whole.size());
      for (const auto number : list_segments(folder.path())) {
        std::filesystem::remove(segment(number));
      }
      forget_durable_end();
      write_content(segment(1), torn);

      const auto opened = open();

      ASSERT_TRUE(opened.has_value()) << length << ": " << opened.error().detail;
      EXPECT_EQ(payloads(*opened), length < second_end ? (Texts{"one"}) : (Texts{"one", "two"}))
          << length;
    }
  }
  EXPECT_TRUE(mentions(reports.all(), "offset=" + std::to_string(first_end)));
  EXPECT_TRUE(mentions(reports.all(), segment(1).string()));
}

TEST_F(RaftJournal, after_a_torn_end_the_log_goes_on_and_can_be_read_again) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
    append(*opened->journal, Index{2}, {"two"});
  }
  auto bytes = content_of(segment(1));
  bytes[segment_header_bytes + 2 * record_header_bytes + 3] ^= 1;
  write_content(segment(1), bytes);
  forget_durable_end();

  {
    auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().detail;
    append(*opened->journal, Index{2}, {"zwei"});
  }
  const auto warnings = reports.warnings();

  EXPECT_EQ(payloads(open().value()), (Texts{"one", "zwei"}));
  EXPECT_EQ(reports.warnings(), warnings) << "reported twice: " << reports.all();
}

// Any single changed byte: the log is refused, or its last group is cut off if nothing shows that
// it was acknowledged, but no entry is ever another than the one that was written.
TEST_F(RaftJournal, a_changed_byte_never_becomes_an_entry) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one", "two"});
    append(*opened->journal, Index{3}, {"three"});
    append(*opened->journal, Index{4}, {"four", "five"});
  }
  const auto whole = content_of(segment(1));
  const Texts written{"one", "two", "three", "four", "five"};
  const auto last_group = segment_header_bytes + 3 * record_header_bytes + 11;
  const auto end = last_group + 2 * record_header_bytes + 8;

  for (std::size_t at = 0; at < end + 100; ++at) {
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    write_content(segment(1), bytes);
    forget_durable_end();

    const auto opened = open();

    if (at < last_group) {
      ASSERT_FALSE(opened.has_value()) << at;
      EXPECT_EQ(opened.error().code, Errc::invalid_argument);
      EXPECT_TRUE(mentions(opened.error().detail, segment(1).string())) << opened.error().detail;
    } else {
      ASSERT_TRUE(opened.has_value()) << at << ": " << opened.error().detail;
      const auto texts = payloads(*opened);
      ASSERT_GE(texts.size(), 3U);
      EXPECT_TRUE(std::equal(texts.begin(), texts.end(), written.begin())) << at;
      EXPECT_EQ(texts.size() == 5, at >= end) << at;
    }
    for (const auto number : list_segments(folder.path())) {
      std::filesystem::remove(segment(number));
    }
  }
}

TEST_F(RaftJournal, damage_is_named_with_file_offset_index_and_what_to_do) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
    append(*opened->journal, Index{2}, {"two"});
    append(*opened->journal, Index{3}, {"three"});
  }
  const auto offset = segment_header_bytes + record_header_bytes + 3;
  auto bytes = content_of(segment(1));
  bytes[offset + record_header_bytes] = '?';
  write_content(segment(1), bytes);

  const auto opened = open();

  ASSERT_FALSE(opened.has_value());
  const auto& detail = opened.error().detail;
  EXPECT_TRUE(mentions(detail, segment(1).string())) << detail;
  EXPECT_TRUE(mentions(detail, "offset " + std::to_string(offset))) << detail;
  EXPECT_TRUE(mentions(detail, "entry 2")) << detail;
  EXPECT_TRUE(mentions(detail, "checksum")) << detail;
  EXPECT_TRUE(mentions(detail, "backup")) << detail;
}

// A block that the disk forgot reads as zeros, like the end of the log.
TEST_F(RaftJournal, zeros_in_the_middle_are_damage_and_not_the_end) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
    append(*opened->journal, Index{2}, {"two"});
    append(*opened->journal, Index{3}, {"three"});
  }
  auto bytes = content_of(segment(1));
  const auto record = record_header_bytes + 3;
  bytes.replace(segment_header_bytes + record, record, std::string(record, '\0'));
  write_content(segment(1), bytes);

  EXPECT_FALSE(open().has_value());
}

TEST_F(RaftJournal, a_missing_segment_is_a_gap_unless_a_snapshot_stands_for_it) {
  {
    auto opened = open();
    for (std::uint64_t index = 1; index <= 12; ++index) {
      append(*opened->journal, Index{index}, {std::string(500, 'x')});
    }
  }
  std::filesystem::remove(segment(2));

  const auto without = open();
  const auto with = open({.index = Index{8}, .term = Term{1}});

  ASSERT_FALSE(without.has_value());
  EXPECT_TRUE(mentions(without.error().detail, "gap")) << without.error().detail;
  ASSERT_TRUE(with.has_value()) << with.error().detail;
  EXPECT_EQ(with->first.get() + with->entries.size(), 13U);
}

TEST_F(RaftJournal, another_version_and_another_cluster_are_refused_by_name) {
  {
    ASSERT_TRUE(open().has_value());
  }
  const auto original = content_of(segment(1));

  auto newer = original;
  newer[8] = 9;
  write_content(segment(1), newer);
  const auto other_version = open();
  write_content(segment(1), original);
  auto foreign = options();
  foreign.cluster = ClusterId{78};
  const auto other_cluster = Journal::open(foreign, {});

  ASSERT_FALSE(other_version.has_value());
  EXPECT_TRUE(mentions(other_version.error().detail, "version is 9"))
      << other_version.error().detail;
  ASSERT_FALSE(other_cluster.has_value());
  EXPECT_TRUE(mentions(other_cluster.error().detail, "another log"))
      << other_cluster.error().detail;
}

// A log that an installed snapshot replaced must not reappear after a restart.
TEST_F(RaftJournal, a_log_that_does_not_contain_the_snapshot_is_removed_for_good) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one", "two"});
  }
  const SnapshotMark snapshot{.index = Index{2}, .term = Term{9}};
  {
    auto opened = open(snapshot);
    ASSERT_TRUE(opened.has_value()) << opened.error().detail;
    EXPECT_TRUE(opened->entries.empty());
    EXPECT_EQ(opened->first, Index{3});
    append(*opened->journal, Index{3}, {"three"});
  }

  const auto opened = open(snapshot);

  ASSERT_TRUE(opened.has_value()) << opened.error().detail;
  EXPECT_EQ(opened->first, Index{3});
  EXPECT_EQ(payloads(*opened), (Texts{"three"}));
}

// A stopping member must not wait for space on a full disk.
TEST_F(RaftJournal, stop_waiting_wakes_a_write_that_waits_for_space_and_tears_nothing) {
  auto slow_retry = options();
  slow_retry.retry = std::chrono::hours(1);
  {
    auto opened = Journal::open(slow_retry, {});
    ASSERT_TRUE(opened.has_value()) << opened.error().detail;
    append(*opened->journal, Index{1}, {"one"});
    const auto away = folder.path().string() + "-away";
    std::filesystem::rename(folder.path(), away);
    std::thread writer([&] {
      append(*opened->journal, Index{2}, Texts(20, std::string(500, 'x')));
      append(*opened->journal, Index{22}, {"after it"});
    });
    EXPECT_TRUE(
        test::eventually([&] { return mentions(reports.all(), "segment_allocation_failed"); }));

    opened->journal->stop_waiting();
    writer.join();

    EXPECT_TRUE(opened->journal->has_given_up());
    std::filesystem::rename(away, folder.path());
  }

  const auto opened = open();

  ASSERT_TRUE(opened.has_value()) << opened.error().detail;
  EXPECT_EQ(payloads(*opened).front(), "one");
  EXPECT_LT(opened->entries.size(), 21U);
  EXPECT_FALSE(mentions(payloads(*opened).back(), "after")) << "no gap";
}

// A leftover segment would be read as the log that follows the snapshot.
TEST_F(RaftJournal, an_old_segment_that_cannot_be_removed_stops_the_process) {
  const auto restart_beside_a_folder = [this] {
    auto loud = options();
    loud.report = [](log::Level, std::string_view event, log::Fields fields) {
      std::fputs(test::line_of(event, fields).c_str(), stderr);
    };
    auto opened = Journal::open(loud, {});
    append(*opened->journal, Index{1}, {"one"});
    std::filesystem::remove(segment(1));
    std::filesystem::create_directories(segment(1) / "in the way");
    opened->journal->restart();
  };

  EXPECT_EXIT(restart_beside_a_folder(),
              ::testing::ExitedWithCode(static_cast<int>(ExitCode::disk)), "cannot remove");
}

TEST_F(RaftJournal, restart_removes_all_segments) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one", "two"});
    opened->journal->restart();
    append(*opened->journal, Index{10}, {"ten"});
  }

  const auto opened = open({.index = Index{9}, .term = Term{1}});

  ASSERT_TRUE(opened.has_value()) << opened.error().detail;
  EXPECT_EQ(payloads(*opened), (Texts{"ten"}));
}

}  // namespace
}  // namespace tenure::server::raft
