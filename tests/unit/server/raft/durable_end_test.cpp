#include "server/raft/durable_end.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "server/raft/journal.hpp"
#include "support/raft/journal.hpp"

namespace tenure::server::raft {
namespace {

using test::content_of;
using test::write_content;
class RaftDurableEnd : public JournalTest {};

// No later group proves that the last group was durable. Truncating it could drop entries that this
// member acknowledged.
TEST_F(RaftDurableEnd, a_changed_byte_in_the_last_acknowledged_group_is_damage) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
    append(*opened->journal, Index{2}, {"two", "three"});
  }
  const auto whole = content_of(segment(1));
  const auto last_group = segment_header_bytes + record_header_bytes + 3;
  const auto end = last_group + 2 * record_header_bytes + 8;

  for (std::size_t at = last_group; at < end; ++at) {
    auto bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    write_content(segment(1), bytes);

    const auto opened = open();

    ASSERT_FALSE(opened.has_value()) << at;
    EXPECT_EQ(opened.error().code, Errc::invalid_argument);
    EXPECT_TRUE(mentions(opened.error().detail, segment(1).string())) << opened.error().detail;
    EXPECT_TRUE(mentions(opened.error().detail, "was durable")) << opened.error().detail;
  }
  write_content(segment(1), whole);
  EXPECT_EQ(payloads(open().value()), (Texts{"one", "two", "three"}));
}

TEST_F(RaftDurableEnd, an_acknowledged_end_that_reads_as_zeros_is_damage) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
  }
  auto bytes = content_of(segment(1));
  const auto used = bytes.size() - segment_header_bytes;
  bytes.replace(segment_header_bytes, used, std::string(used, '\0'));
  write_content(segment(1), bytes);

  EXPECT_FALSE(open().has_value());
}

// A restart without a write must keep the recorded end.
TEST_F(RaftDurableEnd, damage_of_an_acknowledged_end_is_found_after_an_idle_restart) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
  }
  ASSERT_TRUE(open().has_value());
  auto bytes = content_of(segment(1));
  bytes[segment_header_bytes + record_header_bytes] ^= 1;
  write_content(segment(1), bytes);

  EXPECT_FALSE(open().has_value());
}

TEST_F(RaftDurableEnd, the_durable_end_is_recorded_before_sync_returns) {
  auto opened = open();
  append(*opened->journal, Index{1}, {"one"});

  const auto end = DurableEnd::read(folder / "durable_end");

  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->segment, 1U);
  EXPECT_EQ(end->offset, segment_header_bytes + record_header_bytes + 3);
}

TEST_F(RaftDurableEnd, a_damaged_copy_of_the_durable_end_is_covered_by_the_other) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
  }
  const auto whole = content_of(folder / "durable_end");
  auto log = content_of(segment(1));
  log[segment_header_bytes + record_header_bytes] ^= 1;
  write_content(segment(1), log);

  for (const std::size_t copy : {0U, 4096U}) {
    auto damaged = whole;
    damaged[copy + 9] ^= 1;
    write_content(folder / "durable_end", damaged);
    EXPECT_FALSE(open().has_value()) << copy;
  }
}

// A directory of an earlier version has no record of the durable end.
TEST_F(RaftDurableEnd, a_log_without_a_durable_end_is_read_and_gets_one) {
  {
    auto opened = open();
    append(*opened->journal, Index{1}, {"one"});
  }
  forget_durable_end();

  EXPECT_EQ(payloads(open().value()), (Texts{"one"}));

  EXPECT_TRUE(DurableEnd::read(folder / "durable_end").has_value());
  EXPECT_EQ(reports.warnings(), 0U) << reports.all();
}

// A missing record only weakens a check, so a member continues without it.
TEST_F(RaftDurableEnd, a_durable_end_that_cannot_be_recorded_is_reported_once_and_the_log_goes_on) {
  std::filesystem::create_directory(folder / "durable_end");
  {
    auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().detail;
    append(*opened->journal, Index{1}, {"one"});
    append(*opened->journal, Index{2}, {"two"});
  }
  EXPECT_EQ(reports.warnings(), 1U) << reports.all();
  EXPECT_TRUE(mentions(reports.all(), "durable_end")) << reports.all();

  EXPECT_EQ(payloads(open().value()), (Texts{"one", "two"}));
}

}  // namespace
}  // namespace tenure::server::raft
